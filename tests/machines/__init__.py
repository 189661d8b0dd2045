"""Virtual machines in which the product is tried on other systems: `make vm TARGET=...`."""

"""Small faults put into reference solutions: what the tests of a problem should notice."""

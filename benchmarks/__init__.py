"""Benchmarks of slop-code against bare pytest: `python -m benchmarks`, or `make bench`."""

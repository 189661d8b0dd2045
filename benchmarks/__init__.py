"""What slop-code costs: `python -m benchmarks`, or `make bench`."""

"""Usage of processors and memory by tests, and time limits that a busy machine made strike."""

"""Step `strength`: mutants of the reference and control programs, which tests should notice."""

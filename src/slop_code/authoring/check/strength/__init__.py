"""Step `strength`: mutants and distortions of the reference, which tests should notice."""

"""Code quality of submissions: figures beside the verdicts, never part of them."""

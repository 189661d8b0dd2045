"""Code quality of submissions, and changes between checkpoints: figures beside the verdicts, never part of them."""

"""Quality of submissions' code, and changes between checkpoints."""

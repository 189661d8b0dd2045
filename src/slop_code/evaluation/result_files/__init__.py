"""Results in their folders."""

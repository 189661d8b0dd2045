"""Many checkpoints: what is there, what is left to do, doing it, and what it comes to."""

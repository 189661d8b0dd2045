"""Runs that are evaluated while an agent still works on them."""

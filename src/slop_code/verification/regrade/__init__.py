"""Regrading: stored results against changed problems, with what changed for each test."""

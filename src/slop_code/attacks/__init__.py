"""Hostile submissions, tried on an evaluator to see what it holds."""

"""Comparison of two or more evaluated runs."""

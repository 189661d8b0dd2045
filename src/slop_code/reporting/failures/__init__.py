"""Failures of tests for people: the line that says why, and tests grouped by cause."""

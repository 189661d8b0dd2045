"""Stored results graded again, evaluated again, and compared with what was stored."""

"""Verification of stored results: graded again from their evidence, or evaluated again, and compared."""

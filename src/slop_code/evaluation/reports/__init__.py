"""The report formats of a pytest run, each parsed into the same records."""

"""What `problems check` does, one module for each step: `STEP` says what it is and does it."""

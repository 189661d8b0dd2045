"""Files of SlopCodeBench runs, read as our records."""

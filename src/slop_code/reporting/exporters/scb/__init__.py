"""Run folders that the tools of SlopCodeBench read."""

"""Progress on standard error: events as English, the state of a run, and what a terminal or a pipe shows of it."""

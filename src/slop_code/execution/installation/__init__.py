"""Installation: set-up of submissions, the tests' tools, Python versions, and the causes of failures."""

"""Installation: set-up of submissions, the environment of the test tools, and the causes of failures."""

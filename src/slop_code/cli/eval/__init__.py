"""`slop-code eval`, `eval-problem`, `eval-snapshot` and `merge`: options, actions and progress."""

"""`slop-code eval` and `eval-snapshot`: options, actions and progress."""

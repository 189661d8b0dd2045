"""`slop-code doctor`."""

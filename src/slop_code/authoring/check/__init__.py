"""`problems check`: the steps, and what they share."""

"""`problems new`: a small working problem, to be changed into another."""

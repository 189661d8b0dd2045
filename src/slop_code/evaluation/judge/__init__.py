"""pytest plugins of the judge. They are copied to its box, so they import nothing of slop-code."""

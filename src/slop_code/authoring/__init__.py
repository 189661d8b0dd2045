"""Writing problems: new ones, their tests, and whether they are sound."""

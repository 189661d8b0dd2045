"""Step `stability`: the reference's results under repeated runs."""

"""Jobs of a run: the plan, the scheduler with its feed, the places that jobs take, and their records."""

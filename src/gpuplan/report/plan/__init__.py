"""Plans: the answer on the screen, why, what changed, and the plan file."""

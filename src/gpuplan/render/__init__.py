"""A plan as files that other tools run."""

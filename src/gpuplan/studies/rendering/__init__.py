"""A plan as pools that can be started."""

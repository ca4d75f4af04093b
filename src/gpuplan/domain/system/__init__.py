"""A described system, its parts, its facility, and what is wrong with it."""

"""Doors that stay open: a watch that publishes what it finds."""

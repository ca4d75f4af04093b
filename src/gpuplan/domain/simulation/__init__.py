"""Engines, fleets, and what became of the requests."""

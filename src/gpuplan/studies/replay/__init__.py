"""Requests replayed against a fleet: loads, sessions, autoscaled fleets, sizes, power over time."""

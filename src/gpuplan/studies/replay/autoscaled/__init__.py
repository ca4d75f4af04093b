"""Autoscaled fleets replayed, and the smallest that holds a load."""

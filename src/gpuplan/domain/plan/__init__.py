"""Candidates, sizings, the selection problem, and the plan."""

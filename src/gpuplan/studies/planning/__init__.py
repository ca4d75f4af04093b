"""Sized fleets and offers as a selection problem, and the solution as a plan with its bill."""

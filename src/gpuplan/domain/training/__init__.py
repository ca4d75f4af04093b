"""Training jobs: memory, time, runs, scaling."""

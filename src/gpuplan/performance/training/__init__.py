"""Training steps: work of the layers, process groups, step time, runs and goodput."""

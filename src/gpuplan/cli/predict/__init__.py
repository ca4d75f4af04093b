"""`gpuplan predict` and its kin: how fast one configuration is, and what limits it."""

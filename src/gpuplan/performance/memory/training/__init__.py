"""Peak memory of a training step, and what makes a job fit."""

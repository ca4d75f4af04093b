"""Training: measured rows, software stacks, priors and stored fit of the step constants."""

"""Inference: priors, labels and stored fit of the step constants, and ranges by novelty."""

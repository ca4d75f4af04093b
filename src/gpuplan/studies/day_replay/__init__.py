"""The chosen fleet replayed through its day: whether the SLOs are met hour by hour."""

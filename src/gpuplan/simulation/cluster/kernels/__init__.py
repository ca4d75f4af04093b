"""Compiled loops of the cluster simulator: arrays in, arrays changed in place."""

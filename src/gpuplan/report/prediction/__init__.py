"""Predictions: memory fit, latency, training runs, scaling, validation and calibration."""

"""Measured tables: cases, predictions beside measurements, and fits to them."""

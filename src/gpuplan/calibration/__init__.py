"""Fits the model's few free numbers to measurements; keeps the residuals, which become ranges."""

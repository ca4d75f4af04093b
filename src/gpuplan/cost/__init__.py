"""Prices of purchase options, statements of cost over life, unit costs, energy and carbon."""

"""Money, in: prices, a plan and a place; out: rates, whole-life statements, energy and carbon."""

"""A plan against what was observed: what has moved, and what the model should learn from it."""

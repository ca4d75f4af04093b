"""How a model is served, and what is predicted for it."""

"""Iterations of an inference engine: work, engine defaults, serving regimes and start-up."""

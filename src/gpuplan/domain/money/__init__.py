"""Rates, statements, offers, carbon: what things cost."""

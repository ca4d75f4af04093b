"""Offers and owned nodes that a scenario allows, priced."""

"""Rows of published tables as nouns: names, layouts, precisions, training conditions."""

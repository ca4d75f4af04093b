"""Loops and formulas that run on plain numbers and on columns alike."""

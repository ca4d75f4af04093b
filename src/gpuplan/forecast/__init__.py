"""A past load in, its future with a range and a record out; never below zero."""

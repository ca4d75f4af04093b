"""Rules that every fact of the catalog must keep, and what they object to."""

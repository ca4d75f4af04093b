"""The file formats: every key with its description, unit, default and bounds."""

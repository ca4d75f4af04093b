"""User files as plain values with their lines, and what is wrong with them in words."""

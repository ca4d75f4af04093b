"""A finished result as documents and tables."""

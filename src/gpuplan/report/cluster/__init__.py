"""Answers about a shared cluster as documents, tables and drawings."""

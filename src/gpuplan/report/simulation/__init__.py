"""Simulated runs: documents, tables and rows of requests."""

"""Readers of benchmark tools: text in, rows in the columns of measured tables out."""

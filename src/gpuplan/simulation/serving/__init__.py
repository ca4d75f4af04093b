"""Requests against inference engines, iteration by iteration."""

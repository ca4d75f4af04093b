"""Requests as they come: streams, traces, drawn loads."""

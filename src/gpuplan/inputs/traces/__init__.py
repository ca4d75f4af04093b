"""Recorded loads as their producers wrote them: files in, `TraceRead` out."""

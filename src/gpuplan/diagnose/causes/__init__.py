"""Causes by subject: what each is called, how bad it is, and what helps."""

"""Telemetry in; bands, layers, causes with evidence, waste and actions out."""

"""Readers: what monitoring emits, as files or over the network, becomes `Telemetry`."""

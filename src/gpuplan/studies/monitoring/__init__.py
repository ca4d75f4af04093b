"""Telemetry beside the catalog and the forecast: device facts, demand ahead, the watch."""

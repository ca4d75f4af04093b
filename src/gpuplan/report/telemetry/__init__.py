"""Telemetry: diagnosis, forecast, reclaim patches and autoscaler manifests."""

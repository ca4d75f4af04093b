"""Rules for Prometheus and a dashboard for Grafana."""

"""Manifests for Kubernetes and for what runs on it."""

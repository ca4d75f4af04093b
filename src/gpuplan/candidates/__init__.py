"""Deployments that could do the work: proposed, pruned with reasons, and sized."""

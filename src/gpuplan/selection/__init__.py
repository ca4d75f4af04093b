"""Chooses one option for each workload and the nodes to run them on, with a proven gap."""

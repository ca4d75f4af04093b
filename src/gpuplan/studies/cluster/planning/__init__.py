"""How many of which nodes, which quotas and policy meet a cluster's targets at the least cost."""

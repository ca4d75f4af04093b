"""The next best measurement: what a short run of one replica is worth to a plan."""

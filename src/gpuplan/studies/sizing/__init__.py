"""How many replicas are enough: demand, candidates, and the fleets that meet the SLOs."""

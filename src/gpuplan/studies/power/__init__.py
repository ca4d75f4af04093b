"""Power, energy and carbon of nodes, of serving and of training."""

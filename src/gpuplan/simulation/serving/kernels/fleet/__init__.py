"""An autoscaled fleet: replicas, pools, router, clients, and the loop over all of them."""

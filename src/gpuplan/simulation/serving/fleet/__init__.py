"""An autoscaled fleet of replicas: requests and a fleet in, an outcome out."""

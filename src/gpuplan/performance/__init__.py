"""Memory and time of one step of one deployment, from first principles."""

"""Training runs: what is asked for, the servers, and how many of them end in time."""

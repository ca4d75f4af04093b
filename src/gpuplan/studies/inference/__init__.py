"""One inference deployment, evaluated: memory, step times, latency, throughput, and at a rate."""

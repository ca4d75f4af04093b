"""Pipeline stages of one engine: several batches on the way, as in vLLM's queue."""

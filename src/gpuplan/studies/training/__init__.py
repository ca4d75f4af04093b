"""One training job, evaluated: its step, its run, and how it scales."""

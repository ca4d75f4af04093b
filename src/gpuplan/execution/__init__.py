"""Many cases at once: the same answers in the same order, whatever the number of workers."""

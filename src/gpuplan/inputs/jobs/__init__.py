"""Job traces as their producers write them, read into one kind of columns."""

"""One executable check or more for each requirement of the two documents, R1 to R114."""

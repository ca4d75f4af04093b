"""How long jobs wait on a shared cluster, what is stranded, and what would help."""

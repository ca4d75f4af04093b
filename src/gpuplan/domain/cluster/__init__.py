"""Nouns of the shared cluster: jobs, nodes, teams, policy, and what became of every job."""

"""Everything around the accelerators, in: a fleet and a place; out: what to build, and findings."""

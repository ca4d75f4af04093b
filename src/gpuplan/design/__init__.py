"""Everything around the accelerators of a fleet: what to build on a site, and findings."""

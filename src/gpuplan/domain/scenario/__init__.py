"""What the user wants planned: workloads, demand, site, terms."""

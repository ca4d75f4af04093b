"""Accelerators, servers, links, software and the catalog that holds them."""

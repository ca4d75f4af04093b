"""How kernels are compiled: decorators, assembly of their parts, tuples by their address."""

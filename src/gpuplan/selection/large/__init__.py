"""Problems too large for one program: column generation, rounding cuts, nodes pool by pool."""

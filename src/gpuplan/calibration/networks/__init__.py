"""Other networks: constants of vision, encoder and diffusion models, stored and fitted."""

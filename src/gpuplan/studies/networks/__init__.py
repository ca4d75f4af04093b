"""Networks that are no language models: vision, encoders, diffusion, speech."""

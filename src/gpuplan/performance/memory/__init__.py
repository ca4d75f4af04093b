"""What a deployment keeps in the memory of its fullest accelerator."""

"""What monitoring saw, what it means, and what comes next."""

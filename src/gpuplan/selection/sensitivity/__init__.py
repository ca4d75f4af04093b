"""What a limit is worth, why nothing fits, trade-offs, and a plan under other futures."""

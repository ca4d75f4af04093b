"""What is asked of a verb."""

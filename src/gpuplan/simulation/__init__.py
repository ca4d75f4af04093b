"""What a deployment does under a stream of work, over time."""

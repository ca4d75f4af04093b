"""From a published configuration to the network that it describes."""

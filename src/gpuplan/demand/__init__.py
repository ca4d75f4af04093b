"""What comes at the fleet: arrivals, lengths, conversations, mixes of clients, growth."""

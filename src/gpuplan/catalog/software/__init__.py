"""Software versions: what must fit together, as tables and as rules."""

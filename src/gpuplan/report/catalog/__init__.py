"""The catalog: lists, single items with their sources, and updates."""

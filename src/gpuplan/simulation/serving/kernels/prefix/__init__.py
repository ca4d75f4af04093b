"""The prefix cache of an engine: what prompts share, and which of its blocks are cached."""

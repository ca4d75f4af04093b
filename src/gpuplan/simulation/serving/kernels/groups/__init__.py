"""A pool of blocks that several groups of layers share: full attention beside windows."""

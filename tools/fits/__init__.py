"""Fits of stored constants to the package's tables; rows held out of them."""

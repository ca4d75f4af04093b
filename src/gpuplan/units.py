"""Unit constants. Multiply to enter base units, divide to leave them."""

MS = 1e-3  # s
MINUTE = 60.0  # s
HOUR = 3600.0  # s
DAY = 86400.0  # s
KB = 1e3  # bytes
MB = 1e6  # bytes
GB = 1e9  # bytes
TB = 1e12  # bytes
MIB = 2.0**20  # bytes
GIB = 2.0**30  # bytes
GBIT = 1e9 / 8  # bytes
GFLOP = 1e9  # flop
TFLOP = 1e12  # flop
KW = 1e3  # W
MW = 1e6  # W
KWH = 3.6e6  # J
GRAM = 1e-3  # kg

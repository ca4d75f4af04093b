"""Unit constants. Multiply to enter base units, divide to leave them.

The only place where a month or a year has a length.
"""

MS = 1e-3  # s
MINUTE = 60.0  # s
HOUR = 3600.0  # s
DAY = 86400.0  # s
WEEK = 7 * DAY  # s
YEAR = 365 * DAY  # s: 8,760 hours, as bills count
MONTH = YEAR / 12  # s: 730 hours
MONTHS_PER_YEAR = 12
HOURS_PER_WEEK = 168.0
HOURS_PER_MONTH = 730.0
HOURS_PER_YEAR = 8760.0
WEEKS_PER_MONTH = 52 / 12  # of weekly peaks, which are planned in years of 52 weeks
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
KWH = 3.6e6  # J
GRAM = 1e-3  # kg
MM = 1e-3  # m

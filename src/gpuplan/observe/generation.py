"""Old names, new units: collectors that keep DCGM's names but write ratios.

DCGM counts utilization in whole percent. A value between 0 and 1 that is not whole can therefore
only be a ratio, and then all values of that name in the source are. Values that are all 0 or 1
prove nothing: the name's own unit stands.
"""

import math
from collections.abc import Iterable

PERCENT_NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL")


def is_ratio(name: str, values: Iterable[float]) -> bool:
    """Whether this old name carries ratios here."""
    if name not in PERCENT_NAMES:
        return False
    seen = [value for value in values if not math.isnan(value)]
    return bool(seen) and max(seen) <= 1.0 and any(value % 1.0 for value in seen)

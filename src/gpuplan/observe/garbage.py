"""Values that no instrument measured: blanks in disguise, and the physically impossible."""

import math

import numpy as np

from gpuplan.domain.columns import Floats

Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
# Blank, not found, not supported, no permission: the last sixteen of each integer width, and the
# floating marks from 2^47 [DCGM-blanks]; and the wrapped minus one.
_BLANKS = ((2**31 - 16, 2**31), (2**32 - 1, 2**32), (2**47, 2**47 + 16), (2**63 - 1024, math.inf))
# Past these a reading is a fault of the instrument. Clocks lag, so shares get some room.
_MOST = {
    "frac": 1.05,
    "w": 20_000.0,
    "c": 200.0,
    "hz": 2e10,
    "bytes": 2e15,
    "bytes_per_s": 1e14,
}
_LEAST = {"c": -60.0}


def is_blank(values: Floats) -> Mask:
    """Where there is a mark for "no value" rather than a value."""
    found = np.zeros(len(values), dtype=bool)
    for low, high in _BLANKS:
        found |= (values >= low) & (values < high)
    return found


def is_impossible(metric: str, values: Floats) -> Mask:
    """Where no device can be in this state, for a metric of the vocabulary; NaN is not wrong."""
    unit = next((u for u in ("bytes_per_s", *_MOST) if _ends(metric, u)), "")
    least, most = (_LEAST.get(unit, 0.0), _MOST[unit]) if unit else (0.0, math.inf)
    return (values < least) | (values > most)


def _ends(metric: str, unit: str) -> bool:
    return metric.endswith("_" + unit)

"""Many step times at once: columns of loads in, a column of seconds out."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.performance.kernels.step import StepConstants, StepLoad, StepWork, step_time_s

Floats = NDArray[np.float64]
# Rows per pass: the intermediate columns of one pass stay in the processor's cache.
CHUNK_ROWS = 4096


def step_times_s(work: StepWork, k: StepConstants, loads: StepLoad) -> Floats:
    """The same formula as one step at a time; fields of `loads` are columns."""
    n_rows = len(loads.n_decodes)
    out = np.empty(n_rows)
    for start in range(0, n_rows, CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        out[part] = step_time_s(work, k, StepLoad(*(column[part] for column in loads)))
    return out

"""Columns: what passes between rooms when there are many of a thing."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def floats(values: ArrayLike) -> Floats:
    """A contiguous copy that nobody can write to: the one layout kernels accept."""
    column = np.array(values, dtype=np.float64, order="C")
    column.flags.writeable = False
    return column


def ints(values: ArrayLike) -> Ints:
    """A contiguous copy that nobody can write to; a number with a fraction is refused."""
    given = np.asarray(values)
    column = np.array(given, dtype=np.int64, order="C")
    if given.dtype.kind == "f" and not np.array_equal(column, given):
        raise ValueError("a column of whole numbers was given fractions")
    column.flags.writeable = False
    return column

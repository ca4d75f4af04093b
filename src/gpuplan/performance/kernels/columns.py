"""Named tuples of numbers <-> named tuples of columns."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Named = TypeVar("Named", bound=tuple[Any, ...])


def stacked(items: Sequence[Named]) -> Named:
    """One tuple whose fields are columns over the items; nested tuples stay nested."""
    kind = type(items[0])
    parts = [
        stacked([item[i] for item in items])
        if isinstance(items[0][i], tuple)
        else np.array([item[i] for item in items], dtype=np.float64)
        for i in range(len(items[0]))
    ]
    return kind(*parts)


def taken(table: Named, rows: NDArray[np.int64]) -> Named:
    """The same tuple with these rows of every column."""
    return type(table)(
        *(taken(part, rows) if isinstance(part, tuple) else part[rows] for part in table)
    )


def all_floats(named: Named) -> Named:
    """The same tuple with every number a float: one type of arguments is one compilation."""
    kind: Any = type(named)
    found: Named = kind(*(all_floats(p) if isinstance(p, tuple) else float(p) for p in named))
    return found

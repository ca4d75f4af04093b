"""Many training configurations at once: columns of bases through the one step formula."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.training.time import TrainingConstants
from gpuplan.performance.training.basis import StepBasis
from gpuplan.performance.training.step import step_parts

Floats = NDArray[np.float64]
Tree = TypeVar("Tree", bound=tuple[Any, ...])


def stacked(bases: Sequence[Tree]) -> Tree:
    """Equal trees of numbers as one tree of columns."""
    first = bases[0]
    columns = [
        stacked([basis[at] for basis in bases])
        if isinstance(first[at], tuple)
        else np.array([basis[at] for basis in bases], dtype=np.float64)
        for at in range(len(first))
    ]
    return type(first)(*columns)


def step_columns_s(basis: StepBasis, constants: TrainingConstants) -> Floats:
    """Step times of a column of configurations, with one set of constants or a column of them."""
    return np.asarray(sum(step_parts(basis, constants)), dtype=np.float64)

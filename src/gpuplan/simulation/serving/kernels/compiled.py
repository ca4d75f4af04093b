"""How kernels of this room are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False, "forceinline": True}
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compiled and kept on disk, without reference counts.

    Kernels here make no arrays: the caller owns all of them for as long as they run. Counting
    references to views of them would take two thirds of the time. Helpers are inlined: a call would
    copy every array's header.
    """
    compiled: Kernel = njit(**OPTIONS)(function)
    return compiled

"""How kernels of this room are compiled, and when what was compiled before is stale."""

from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from types import FunctionType
from typing import Any, TypeVar

from numba import njit
from numba.extending import register_jitable

from gpuplan.kernel_cache import cached
from gpuplan.performance.kernels import curves, regimes, step

# Kernels make no arrays: without reference counts they load without numpy's catalogue.
OPTIONS: dict[str, Any] = {"_nrt": False}
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Named = TypeVar("Named", bound=tuple[Any, ...])


def _sources() -> str:
    """One figure for the text of every formula and kernel of this room."""
    found = sorted(
        (file.name, file.read_bytes())
        for file in files("gpuplan.performance.kernels").iterdir()
        if file.name.endswith(".py")
    )
    return sha256(b"\0".join(name.encode() + b"\0" + text for name, text in found)).hexdigest()


SOURCES = _sources()

# The formulas stay plain functions; kernels may call them as they are.
for _module in (curves, step, regimes):
    for _function in list(vars(_module).values()):
        if isinstance(_function, FunctionType) and _function.__module__ == _module.__name__:
            register_jitable(_function)


def kernel(function: Kernel) -> Kernel:
    """Compiled and kept on disk for as long as no formula or kernel changes."""
    return cached(njit, function, OPTIONS, stamp=SOURCES)

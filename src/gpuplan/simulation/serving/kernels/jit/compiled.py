"""How kernels of this room are compiled, and when what was compiled before is stale.

Kernels are put together by what numba has inside (`assembly`, `addresses`). Where a version of
it has changed there, plain `njit` compiles the same text to the same answers, a few times slower.
"""

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar, cast
from warnings import warn

from numba import njit
from numba.extending import overload

from gpuplan.kernel_cache import cached

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
T = TypeVar("T")
PLAIN: dict[str, Any] = {"error_model": "numpy"}


def _sorts() -> dict[str, dict[str, Any]]:
    """Options of `njit` for every sort of function."""
    try:
        from gpuplan.simulation.serving.kernels.jit import (  # noqa: PLC0415
            addresses,  # noqa: F401
            assembly,
        )
    except (ImportError, AttributeError) as why:
        what = f"numba has changed inside ({why}): kernels are compiled by plain njit, slower"
        warn(what, RuntimeWarning, stacklevel=2)
        return {}
    uncounted = PLAIN | {"_nrt": False, "no_cfunc_wrapper": True}
    inside = uncounted | {"no_cpython_wrapper": True, "pipeline_class": assembly.PartCompiler}
    return {
        "kernel": uncounted | {"forceinline": False, "pipeline_class": assembly.KernelCompiler},
        "seldom": uncounted | {"forceinline": False, "pipeline_class": assembly.SeldomCompiler},
        "part": inside | {"forceinline": True},
        "rare": inside | {"forceinline": False},
    }


SORTS = _sorts()


def is_assembled() -> bool:
    """Kernels are put together by what numba has inside, not by plain `njit`."""
    return bool(SORTS)


def _texts(folder: Traversable) -> Iterator[bytes]:
    """Name and text of every module below a folder, in order of their names."""
    for found in sorted(folder.iterdir(), key=lambda one: one.name):
        if found.is_dir():
            yield from _texts(found)
        elif found.name.endswith(".py"):
            yield found.name.encode() + b"\0" + found.read_bytes()


@cache
def _sources(package: str) -> str:
    """One figure for the text of every kernel of a simulator."""
    return sha256(b"\0".join(_texts(files(package)))).hexdigest()


def _stamp(function: Kernel) -> str:
    """The figure that what was compiled of the function is kept under."""
    own = function.__module__.partition(".kernels")[0] + ".kernels"
    return SOURCES if own == SERVING else _sources(own) + _sources(f"{SERVING}.jit")


SERVING = "gpuplan.simulation.serving.kernels"
SOURCES = _sources(SERVING)


def kernel(function: Kernel) -> Kernel:
    """What Python calls: compiled and kept on disk, without reference counts.

    Kernels here make no arrays: the caller owns all of them for as long as they run. Counting
    references to views of them would take two thirds of the time. A kernel is not inlined into the
    wrapper that Python calls: that would compile all of it twice.
    """
    return _cached(function, SORTS.get("kernel", PLAIN))


def seldom(function: Kernel) -> Kernel:
    """A kernel that Python calls now and then: quick to compile rather than to run."""
    return _cached(function, SORTS.get("seldom", PLAIN))


def part(function: Kernel) -> Kernel:
    """A part of kernels, inlined; it exists within kernels alone."""
    made: Kernel = njit(**SORTS.get("part", PLAIN))(function)
    return made


def rare(function: Kernel) -> Kernel:
    """A part that is called rather than inlined: what is rare must not swell what is not."""
    made: Kernel = njit(**SORTS.get("rare", PLAIN))(function)
    return made


def _cached(function: Kernel, options: dict[str, Any]) -> Kernel:
    return cached(njit, function, options, stamp=_stamp(function), is_light=is_assembled())


def by_type(name: Callable[..., Any], choose: Callable[[Any], Callable[..., Any]]) -> None:
    """Where `name` is called in a kernel, compile what `choose` picks for its first type."""

    def chosen(first: Any, *_: Any) -> Callable[..., Any]:
        return choose(first)

    overload(name, jit_options=cast(Any, SORTS.get("part", PLAIN)), strict=False)(chosen)


def _itself(tuple_: T) -> T:
    return tuple_


def _lodge_nothing(_tuple: Any, _home: Any) -> None:
    pass


def _lodged_itself(tuple_: T, _home: Any) -> T:
    return tuple_


if is_assembled():
    from gpuplan.simulation.serving.kernels.jit import addresses

    held, far, near = addresses.held, addresses.far, addresses.near
    lodge, lodged = addresses.lodge, addresses.lodged
else:
    held = far = near = part(_itself)
    lodge, lodged = part(_lodge_nothing), part(_lodged_itself)

"""How kernels of this room are compiled, and when what was compiled before is stale."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import overload

from gpuplan.simulation.serving.kernels.jit.assembly import (
    KernelCompiler,
    PartCompiler,
    SeldomCompiler,
)

OPTIONS: dict[str, Any] = {"_nrt": False, "forceinline": True, "error_model": "numpy"}
CALLED: dict[str, Any] = {"forceinline": False}
WHOLE: dict[str, Any] = CALLED | {"no_cfunc_wrapper": True}
PART: dict[str, Any] = {
    "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler,
}  # fmt: skip
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _texts(folder: Traversable) -> Iterator[bytes]:
    """Name and text of every module below a folder, in order of their names."""
    for found in sorted(folder.iterdir(), key=lambda one: one.name):
        if found.is_dir():
            yield from _texts(found)
        elif found.name.endswith(".py"):
            yield found.name.encode() + b"\0" + found.read_bytes()


def _sources() -> str:
    """One figure for the text of every kernel of this room."""
    return sha256(b"\0".join(_texts(files("gpuplan.simulation.serving.kernels")))).hexdigest()


SOURCES = _sources()


def kernel(function: Kernel) -> Kernel:
    """What Python calls: compiled and kept on disk, without reference counts.

    Kernels here make no arrays: the caller owns all of them for as long as they run. Counting
    references to views of them would take two thirds of the time. A kernel is not inlined into the
    wrapper that Python calls: that would compile all of it twice.
    """
    return _kept(function, OPTIONS | WHOLE | {"pipeline_class": KernelCompiler})


def seldom(function: Kernel) -> Kernel:
    """A kernel that Python calls now and then: quick to compile rather than to run."""
    return _kept(function, OPTIONS | WHOLE | {"pipeline_class": SeldomCompiler})


def part(function: Kernel) -> Kernel:
    """A part of kernels, inlined; it exists within kernels alone."""
    made: Kernel = njit(**OPTIONS | PART)(function)
    return made


def rare(function: Kernel) -> Kernel:
    """A part that is called rather than inlined: what is rare must not swell what is not."""
    made: Kernel = njit(**OPTIONS | PART | CALLED)(function)
    return made


def _kept(function: Kernel, options: dict[str, Any]) -> Kernel:
    compiled: Kernel = njit(cache=True, **options)(function)
    cache: Any = getattr(compiled, "_cache", None)
    stored = getattr(cache, "_cache_file", None)
    if stored is not None:
        # The compiler compares a kernel with its own file alone, though callees are inlined.
        stored._source_stamp = SOURCES  # noqa: SLF001
    if hasattr(cache, "_load_overload") and hasattr(cache, "_guard_against_spurious_io_errors"):
        cache.load_overload = partial(_loaded, cache)
    return compiled


def _loaded(cache: Any, signature: Any, context: Any) -> Any:
    """What was compiled before, or nothing.

    The compiler would first load all it knows of numpy and scipy, half a second. Kernels without
    arrays of their own need none of that to run, and a compilation loads it by itself.
    """
    with cache._guard_against_spurious_io_errors():  # noqa: SLF001
        return cache._load_overload(signature, context)  # noqa: SLF001


def by_type(name: Callable[..., Any], choose: Callable[[Any], Callable[..., Any]]) -> None:
    """Where `name` is called in a kernel, compile what `choose` picks for its first type."""

    def chosen(first: Any, *_: Any) -> Callable[..., Any]:
        return choose(first)

    overload(name, jit_options=cast(Any, OPTIONS | PART), strict=False)(chosen)

"""Engines of every kind behind three names, so that a router need not know what it routes to.

A run compiles the kind that it uses, and no other.
"""

from typing import Any

from gpuplan.simulation.serving.kernels.engine.featured import (
    AnyEngine,
    AnyEngines,
    FeaturedEngine,
    FeaturedEngines,
    one_featured,
)
from gpuplan.simulation.serving.kernels.engine.featured_loop import advance_featured
from gpuplan.simulation.serving.kernels.engine.loop import advance as advance_plain
from gpuplan.simulation.serving.kernels.engine.state import one_engine as one_plain
from gpuplan.simulation.serving.kernels.jit.compiled import by_kind


def one_engine(all_: AnyEngines, r: int) -> AnyEngine:
    """Views of one engine's rows: made once, handed down."""
    return one_featured(all_, r) if isinstance(all_, FeaturedEngines) else one_plain(all_, r)


def advance(e: AnyEngine, until: int) -> int:
    """Bring one engine up to this instant; the answer is when it next has something to tell."""
    return advance_featured(e, until) if isinstance(e, FeaturedEngine) else advance_plain(e, until)


def _one_engine(all_: Any, r: Any) -> Any:
    return _python(one_featured if all_.instance_class is FeaturedEngines else one_plain)


def _advance(e: Any, until: Any) -> Any:
    return _python(advance_featured if e.instance_class is FeaturedEngine else advance_plain)


def _python(kernel: Any) -> Any:
    """What a kernel was made of: a call to it would be one more layer to compile."""
    return getattr(kernel, "py_func", kernel)


by_kind(_one_engine, one_engine)
by_kind(_advance, advance)

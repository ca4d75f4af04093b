"""One text for both kinds of engine: where policies make a difference, two functions.

A run compiles the kind that it uses, and no other: the choice is made by the type of the engine
while it is compiled, so that an engine without policies pays nothing for them.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

from gpuplan.simulation.serving.kernels.engine.state import (
    AnyEngine,
    AnyEngines,
    Engine,
    FeaturedEngine,
    FeaturedEngines,
)
from gpuplan.simulation.serving.kernels.jit.compiled import by_type
from gpuplan.simulation.serving.kernels.stages.state import StagedEngine, StagedEngines

Rest = TypeVarTuple("Rest")
R = TypeVar("R")
FEATURED = (FeaturedEngine, FeaturedEngines, StagedEngine, StagedEngines)


def policy(
    *, otherwise: Callable[[Any, *Rest], R]
) -> Callable[[Callable[[Any, *Rest], R]], Callable[[Any, *Rest], R]]:
    """Decorate what engines with policies do; those without do `otherwise`."""
    plain = getattr(otherwise, "py_func", otherwise)

    def decorated(function: Callable[[Any, *Rest], R]) -> Callable[[Any, *Rest], R]:
        @wraps(function)
        def chosen(e: Any, /, *rest: *Rest) -> R:
            return (function if isinstance(e, FEATURED) else plain)(e, *rest)

        by_type(chosen, lambda e: function if e.instance_class in FEATURED else plain)
        return chosen

    return decorated


def _one_without(all_: AnyEngines, r: int) -> AnyEngine:
    p = all_.pool[r]
    return Engine(
        all_.scalar[r],
        all_.slot[r],
        all_.ring[r],
        all_.word[r],
        all_.bins[r],
        all_.flight_s[r],
        all_.request,
        all_.limit[p],
        all_.lines[p],
        all_.slopes[p],
        all_.tokens_s[p],
        all_.rows_s[p],
        all_.mix[p],
    )


@policy(otherwise=_one_without)
def one_engine(all_: AnyEngines, r: int) -> AnyEngine:
    """Views of one engine's rows: made once, handed down."""
    p = all_.pool[r]
    return FeaturedEngine(
        all_.scalar[r],
        all_.slot[r],
        all_.ring[r],
        all_.word[r],
        all_.bins[r],
        all_.flight_s[r],
        all_.request,
        all_.limit[p],
        all_.lines[p],
        all_.slopes[p],
        all_.tokens_s[p],
        all_.rows_s[p],
        all_.mix[p],
        all_.extra,
        all_.path_first,
        all_.path,
        all_.bucket[r],
        all_.entry[r],
        all_.extent[r],
        all_.chain[r],
        all_.found,
        all_.gained[p],
    )

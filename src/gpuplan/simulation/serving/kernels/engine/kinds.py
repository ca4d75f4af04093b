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
    Engines,
    FeaturedEngine,
    FeaturedEngines,
)
from gpuplan.simulation.serving.kernels.jit.compiled import by_type, lodge, part
from gpuplan.simulation.serving.kernels.sglang.state import SglangEngine, SglangEngines
from gpuplan.simulation.serving.kernels.stages.state import StagedEngine, StagedEngines

Rest = TypeVarTuple("Rest")
R = TypeVar("R")
FEATURED = (FeaturedEngine, StagedEngine)


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


def _plain_engine(all_: AnyEngines, r: int) -> AnyEngine:
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


def _featured_engine(all_: AnyEngines, r: int) -> AnyEngine:
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


def _sglang_engine(all_: AnyEngines, r: int) -> AnyEngine:
    p = all_.pool[r]
    return SglangEngine(
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
        all_.rule[p],
        all_.own[r],
        all_.real[r],
        all_.flight[r],
        all_.batch[r],
        all_.scratch[r],
        all_.asked,
        all_.path_first,
        all_.path,
        all_.table[r],
        all_.node[r],
        all_.heap[r],
    )


def _staged_engine(all_: AnyEngines, r: int) -> AnyEngine:
    p = all_.pool[r]
    return StagedEngine(
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
        all_.flight[r],
        all_.peak_s[r],
        all_.stage[r],
        all_.late[r],
    )


VIEWS = {
    Engines: _plain_engine,
    FeaturedEngines: _featured_engine,
    StagedEngines: _staged_engine,
    SglangEngines: _sglang_engine,
}


def one_engine(all_: AnyEngines, r: int) -> AnyEngine:
    """Views of one engine's rows: made once, handed down."""
    return VIEWS[type(all_)](all_, r)


by_type(one_engine, lambda all_: VIEWS[all_.instance_class])


@part
def lodge_all(engines: AnyEngines) -> None:
    """Every engine's tuple is written down, for what is called with it."""
    for r in range(engines.home.shape[0]):
        lodge(one_engine(engines, r), engines.home[r])

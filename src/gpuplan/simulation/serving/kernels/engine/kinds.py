"""One text for all kinds of engine: where policies or groups make a difference, functions of each.

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
from gpuplan.simulation.serving.kernels.groups.state import GroupedEngine, GroupedEngines
from gpuplan.simulation.serving.kernels.jit.compiled import by_type, lodge
from gpuplan.simulation.serving.kernels.sglang.state import SglangEngine, SglangEngines
from gpuplan.simulation.serving.kernels.stages.state import StagedEngine, StagedEngines

Rest = TypeVarTuple("Rest")
R = TypeVar("R")
FEATURED = (FeaturedEngine, StagedEngine, GroupedEngine)


def policy(
    *,
    otherwise: Callable[[Any, *Rest], R] | None = None,
    grouped: Callable[[Any, *Rest], R] | None = None,
) -> Callable[[Callable[[Any, *Rest], R]], Callable[[Any, *Rest], R]]:
    """Decorate what engines with policies do; those without do `otherwise`, if it is given.

    Where it matters that layers are in groups, engines that have them do `grouped`.
    """
    plain, groups = getattr(otherwise, "py_func", otherwise), getattr(grouped, "py_func", grouped)

    def decorated(function: Callable[[Any, *Rest], R]) -> Callable[[Any, *Rest], R]:
        def kind(of: type) -> Callable[[Any, *Rest], R]:
            if groups is not None and of is GroupedEngine:
                return groups
            return function if plain is None or of in FEATURED else plain

        @wraps(function)
        def chosen(e: Any, /, *rest: *Rest) -> R:
            return kind(type(e))(e, *rest)

        by_type(chosen, lambda e: kind(e.instance_class))
        return chosen

    return decorated


def _in_both(function: Callable[[AnyEngines, int], R]) -> Callable[[AnyEngines, int], R]:
    """Decorate what kernels inline and Python calls as it stands."""
    by_type(function, lambda _: function)
    return function


@_in_both
def _rows(all_: AnyEngines, r: int) -> tuple[Any, ...]:
    """One engine's rows, its pool's tables, and what all share: the fields of every engine."""
    p = all_.pool[r]
    return (
        all_.scalar[r],
        all_.slot[r],
        all_.ring[r],
        all_.word[r],
        all_.bins[r],
        all_.flight_s[r],
        all_.request,
        all_.pool,
        all_.limit[p],
        all_.lines[p],
        all_.slopes[p],
        all_.tokens_s[p],
        all_.rows_s[p],
        all_.mix[p],
        all_.home[r],
    )


@_in_both
def _policy_rows(all_: AnyEngines, r: int) -> tuple[Any, ...]:
    text = (all_.extra, all_.path_first, all_.path, all_.bucket[r], all_.entry[r])
    cache = (all_.extent[r], all_.chain[r], all_.found, all_.gained[all_.pool[r]])
    return (*_rows(all_, r), *text, *cache)


@_in_both
def _staged_rows(all_: AnyEngines, r: int) -> tuple[Any, ...]:
    batches = (all_.flight[r], all_.peak_s[r], all_.stage[r], all_.late[r])
    return (*_policy_rows(all_, r), *batches)


@_in_both
def _sglang_rows(all_: AnyEngines, r: int) -> tuple[Any, ...]:
    batch = (all_.rule[all_.pool[r]], all_.own[r], all_.real[r], all_.flight[r], all_.batch[r])
    text = (all_.scratch[r], all_.requested, all_.path_first, all_.path)
    tree = (all_.table[r], all_.node[r], all_.heap[r])
    return (*_rows(all_, r), *batch, *text, *tree)


def _view(one: Any, rows: Any) -> Callable[[AnyEngines, int], AnyEngine]:
    def view(all_: AnyEngines, r: int) -> AnyEngine:
        return one(*rows(all_, r))

    return view


VIEWS = {
    Engines: _view(Engine, _rows),
    FeaturedEngines: _view(FeaturedEngine, _policy_rows),
    GroupedEngines: _view(GroupedEngine, _policy_rows),
    StagedEngines: _view(StagedEngine, _staged_rows),
    SglangEngines: _view(SglangEngine, _sglang_rows),
}


def one_engine(all_: AnyEngines, r: int) -> AnyEngine:
    """Views of one engine's rows: made once, handed down."""
    return VIEWS[type(all_)](all_, r)


by_type(one_engine, lambda all_: VIEWS[all_.instance_class])


def lodge_all(engines: AnyEngines) -> None:
    """Every engine's tuple is written down, for what is called with it."""
    for r in range(engines.home.shape[0]):
        lodge(one_engine(engines, r), engines.home[r])


# A part of each kernel that calls it: tables of lockstep and plain fleets are laid out otherwise.
by_type(lodge_all, lambda engines: lodge_all)

"""An engine by its scheduler, chosen by its type while a kernel is compiled.

vLLM's, vLLM's with pipeline stages, or SGLang's.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

from gpuplan.simulation.serving.kernels.engine import kinds, loop, removal
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine, AnyEngines
from gpuplan.simulation.serving.kernels.jit.compiled import by_type
from gpuplan.simulation.serving.kernels.sglang import loop as sglang_loop
from gpuplan.simulation.serving.kernels.sglang import removal as sglang_removal
from gpuplan.simulation.serving.kernels.sglang.state import SglangEngine, SglangEngines
from gpuplan.simulation.serving.kernels.stages import loop as staged_loop
from gpuplan.simulation.serving.kernels.stages.state import StagedEngine, StagedEngines

Rest = TypeVarTuple("Rest")
R = TypeVar("R")
SGLANG, STAGED = (SglangEngine, SglangEngines), (StagedEngine, StagedEngines)


def _any_of(
    vllm: Callable[[Any, *Rest], R],
    staged: Callable[[Any, *Rest], R],
    sglang: Callable[[Any, *Rest], R],
) -> Callable[[Any, *Rest], R]:
    """What the engine's own scheduler does."""
    plain, stages, other = (getattr(f, "py_func", f) for f in (vllm, staged, sglang))

    def kind(of: type) -> Callable[[Any, *Rest], R]:
        return other if of in SGLANG else stages if of in STAGED else plain

    @wraps(plain)
    def chosen(e: Any, /, *rest: *Rest) -> R:
        return kind(type(e))(e, *rest)

    by_type(chosen, lambda e: kind(e.instance_class))
    return chosen


def _vllm_engine(all_: AnyEngines, r: int) -> AnyEngine:
    return kinds.one_engine(all_, r)


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


one_engine = _any_of(_vllm_engine, _staged_engine, _sglang_engine)
advance = _any_of(loop.advance, staged_loop.advance, sglang_loop.advance)
abort = _any_of(removal.abort, staged_loop.abort, sglang_removal.abort)
spend = _any_of(removal.spend, staged_loop.spend, sglang_removal.spend)
empty = _any_of(removal.empty, staged_loop.empty, sglang_removal.empty)

"""An engine by its scheduler: vLLM's or SGLang's, chosen by its type while a kernel is compiled."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

from gpuplan.simulation.serving.kernels.engine import kinds, loop, removal
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine, AnyEngines
from gpuplan.simulation.serving.kernels.jit.compiled import by_type
from gpuplan.simulation.serving.kernels.sglang import loop as sglang_loop
from gpuplan.simulation.serving.kernels.sglang import removal as sglang_removal
from gpuplan.simulation.serving.kernels.sglang.state import SglangEngine, SglangEngines

Rest = TypeVarTuple("Rest")
R = TypeVar("R")
SGLANG = (SglangEngine, SglangEngines)


def _either(
    vllm: Callable[[Any, *Rest], R], sglang: Callable[[Any, *Rest], R]
) -> Callable[[Any, *Rest], R]:
    """What the engine's own scheduler does."""
    one, other = (getattr(f, "py_func", f) for f in (vllm, sglang))

    @wraps(one)
    def chosen(e: Any, /, *rest: *Rest) -> R:
        return (other if isinstance(e, SGLANG) else one)(e, *rest)

    by_type(chosen, lambda e: other if e.instance_class in SGLANG else one)
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


one_engine = _either(_vllm_engine, _sglang_engine)
advance = _either(loop.advance, sglang_loop.advance)
abort = _either(removal.abort, sglang_removal.abort)
spend = _either(removal.spend, sglang_removal.spend)
empty = _either(removal.empty, sglang_removal.empty)

"""An engine by its scheduler, chosen by its type while a kernel is compiled.

vLLM's, vLLM's with pipeline stages, or SGLang's.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

from gpuplan.simulation.serving.kernels.engine import loop, removal
from gpuplan.simulation.serving.kernels.jit.compiled import by_type
from gpuplan.simulation.serving.kernels.sglang import loop as sglang_loop
from gpuplan.simulation.serving.kernels.sglang import removal as sglang_removal
from gpuplan.simulation.serving.kernels.sglang.state import SglangEngine
from gpuplan.simulation.serving.kernels.stages import loop as staged_loop
from gpuplan.simulation.serving.kernels.stages.state import StagedEngine

Rest = TypeVarTuple("Rest")
R = TypeVar("R")


def _any_of(
    vllm: Callable[[Any, *Rest], R],
    staged: Callable[[Any, *Rest], R],
    sglang: Callable[[Any, *Rest], R],
) -> Callable[[Any, *Rest], R]:
    """What the engine's own scheduler does."""
    plain, stages, other = (getattr(f, "py_func", f) for f in (vllm, staged, sglang))

    def kind(of: type) -> Callable[[Any, *Rest], R]:
        return other if of is SglangEngine else stages if of is StagedEngine else plain

    @wraps(plain)
    def chosen(e: Any, /, *rest: *Rest) -> R:
        return kind(type(e))(e, *rest)

    by_type(chosen, lambda e: kind(e.instance_class))
    return chosen


advance = _any_of(loop.advance, staged_loop.advance, sglang_loop.advance)
abort = _any_of(removal.abort, staged_loop.abort, sglang_removal.abort)
spend = _any_of(removal.spend, staged_loop.spend, sglang_removal.spend)
empty = _any_of(removal.empty, staged_loop.empty, sglang_removal.empty)

"""LoRA adapters of one step: at most so many different ones [vLLM-V1-scheduler].

What runs keeps its adapter; who waits for another one is passed over while the step is full.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part


def _is_unlimited(_: AnyEngine) -> bool:
    return False


@policy(otherwise=_is_unlimited)
def is_limited(e: AnyEngine) -> bool:
    """Steps have a limit on adapters."""
    return bool(e.limit[st.MAX_ADAPTERS] > 0)


@part
def _mark(e: AnyEngine, is_taken: int) -> None:
    """The adapters of what runs are those of the step, or no longer."""
    v = e.scalar[st.HEAD]
    while v >= 0:
        if e.slot[v, st.DONE] != st.LEAVING:
            _note(e, e.slot[v, st.ID], is_taken)
        v = e.slot[v, st.AFTER]


@part
def _note(e: AnyEngine, i: int, is_taken: int) -> None:
    a = e.extra[i, st.ADAPTER]
    if a >= 0 and e.extra[a, st.IS_TAKEN] != is_taken:
        e.extra[a, st.IS_TAKEN] = is_taken
        e.scalar[st.N_ADAPTERS] += 2 * is_taken - 1


def _count_nothing(_: AnyEngine) -> None:
    pass


@policy(otherwise=_count_nothing)
def count_adapters(e: AnyEngine) -> None:
    """The adapters of what runs are those of the step."""
    if is_limited(e):
        _mark(e, st.ONE)


@policy(otherwise=_count_nothing)
def forget_adapters(e: AnyEngine) -> None:
    """The step is drawn up."""
    if is_limited(e):
        _mark(e, st.ZERO)


def _take_nothing(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_take_nothing)
def take_adapter(e: AnyEngine, i: int) -> None:
    """The request joins the step."""
    if is_limited(e):
        _note(e, i, st.ONE)


def _is_free(_: AnyEngine, __: int) -> bool:
    return False


@policy(otherwise=_is_free)
def lacks_adapter(e: AnyEngine, i: int) -> bool:
    """The request needs one adapter more than the step may have."""
    a = e.extra[i, st.ADAPTER]
    if not is_limited(e) or a < 0:
        return False
    is_full = e.scalar[st.N_ADAPTERS] == e.limit[st.MAX_ADAPTERS]
    return bool(is_full and not e.extra[a, st.IS_TAKEN])

"""Blocks that requests need and decodes hold: as the count of all says, or fewer in first steps.

With drafts, a prompt that ends holds no room for them yet, unless its last token was read with
them; and who schedules ahead has none in flight at the first decode. What such decodes hold less
than counted is a debt, paid when they go on.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks, n_total
from gpuplan.simulation.serving.kernels.engine.positions import (
    lag,
    n_beyond,
    n_draft_tokens,
    position_after,
)
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.groups import cache as groups
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare


@part
def _counted(e: AnyEngine, v: int) -> int:
    """Blocks of a decode before the step to come, as all decodes are counted."""
    at = position_after(e, -1 - lag(e))
    return n_blocks(e.limit, e.slot[v, st.OFFSET] + at + n_beyond(e))


@part
def _counted_next(e: AnyEngine, v: int) -> int:
    at = position_after(e, -lag(e))
    return n_blocks(e.limit, e.slot[v, st.OFFSET] + at + n_beyond(e))


@part
def age(e: AnyEngine, v: int) -> int:
    """Tokens that the slot has gained as a decode; who is leaving notes where it began."""
    slot = e.slot[v]
    is_leaving = slot[st.DONE] <= st.LEAVING
    began = slot[st.PEER_BEFORE] if is_leaving else n_total(e.request, slot[st.ID])
    return int(slot[st.OFFSET] + e.scalar[st.STEP] - began)


@policy(otherwise=_counted)
def n_held(e: AnyEngine, v: int) -> int:
    """Blocks of a decode before the step to come."""
    return _n_held(far(e), v) if n_draft_tokens(e) > 0 else _counted(e, v)


@rare
def _n_held(e: AnyEngine, v: int) -> int:
    n_tokens, gained = e.slot[v, st.OFFSET] + e.scalar[st.STEP], age(e, v)
    pad = e.extra[e.slot[v, st.ID], st.PAD]
    if gained == 0:
        return n_blocks(e.limit, n_tokens - 1 + pad)
    if lag(e) and gained == e.scalar[st.GAIN]:
        return n_blocks(e.limit, n_tokens - gained + n_draft_tokens(e) + pad)
    return _counted(e, v)


@policy(otherwise=_counted_next)
def n_held_next(e: AnyEngine, v: int) -> int:
    """Blocks of a decode with its share of the step to come."""
    return _n_held_next(far(e), v) if n_draft_tokens(e) > 0 else _counted_next(e, v)


@rare
def _n_held_next(e: AnyEngine, v: int) -> int:
    if age(e, v) == 0:
        n_ahead = n_draft_tokens(e) + lag(e) * e.extra[e.slot[v, st.ID], st.PAD]
        return n_blocks(e.limit, e.slot[v, st.OFFSET] + e.scalar[st.STEP] + n_ahead)
    return _counted_next(e, v)


def _owe_nothing(_: AnyEngine, __: int, ___: int) -> None:
    pass


@policy(otherwise=_owe_nothing)
def owe(e: AnyEngine, v: int, sign: int) -> None:
    """The decode is counted from now on, or no longer, with what it holds less than counted."""
    if n_draft_tokens(e) > 0 and not e.scalar[st.IS_WALKING]:
        _owe(far(e), v, sign)


@rare
def _owe(e: AnyEngine, v: int, sign: int) -> None:
    e.scalar[st.DEBT] += sign * (_counted(e, v) - n_held(e, v))
    e.scalar[st.NEXT_DEBT] += sign * owed_next(e, v)


@part
def owed_next(e: AnyEngine, v: int) -> int:
    """What the decode holds less than counted with its share of the step to come."""
    return _counted_next(e, v) - n_held_next(e, v)


def _no_debt(_: AnyEngine) -> int:
    return 0


@policy(otherwise=_no_debt)
def due(e: AnyEngine) -> int:
    """Blocks of debts that the step to come needs."""
    return int(e.scalar[st.DEBT] - e.scalar[st.NEXT_DEBT])


def _pay_nothing(_: AnyEngine) -> None:
    pass


@policy(otherwise=_pay_nothing)
def pay(e: AnyEngine) -> None:
    """The decodes have what the step to come needs."""
    e.scalar[st.DEBT], e.scalar[st.NEXT_DEBT] = e.scalar[st.NEXT_DEBT], 0


def _is_never_in_debt(_: AnyEngine) -> bool:
    return False


@policy(otherwise=_is_never_in_debt)
def is_in_debt(e: AnyEngine) -> bool:
    """Some decodes hold less than counted: the next step must be drawn up by itself."""
    return bool(e.scalar[st.DEBT] != 0 or e.scalar[st.NEXT_DEBT] != 0)


@policy(grouped=groups.lacking)
def lacking(e: AnyEngine, v: int, n_new: int) -> int:
    """Blocks that the slot lacks for so many tokens more."""
    done = e.slot[v, st.DONE]
    if done >= 0:
        return int(n_blocks(e.limit, done + n_new) - n_blocks(e.limit, done))
    return int(n_held_next(e, v) - n_held(e, v))


def _has_groups(_: AnyEngine) -> bool:
    return True


@policy(grouped=_has_groups)
def must_walk(_: AnyEngine) -> bool:
    """Blocks are taken and given back one by one."""
    return False


@policy(grouped=groups.to_admit)
def to_admit(e: AnyEngine, found: tuple[int, int], progress: tuple[int, int, int]) -> int:
    """Free blocks that a request needs to join; `progress`: computed, of the chunk, of all."""
    (hit, n_free), (done, chunk, n_tokens) = found, progress
    whole = n_blocks(e.limit, n_tokens) * e.limit[st.IS_RESERVING]
    return int(max(n_blocks(e.limit, done + chunk), whole) - hit + n_free)

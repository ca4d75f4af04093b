"""Engines that step together: data-parallel ranks whose attention shares one set of experts.

Every iteration of a group begins and ends for all of its engines at the same instants. It lasts
as long as the longest of their own parts and what they do together, by the tokens of all. An
engine without work takes part: it has to serve the experts.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import one_engine
from gpuplan.simulation.serving.kernels.engine.loop import complete
from gpuplan.simulation.serving.kernels.engine.queue import see_arrivals
from gpuplan.simulation.serving.kernels.engine.runs import EVENT, LOAD, route
from gpuplan.simulation.serving.kernels.engine.schedule import begin
from gpuplan.simulation.serving.kernels.engine.state import Engines, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import held, kernel, part


@part
def _begin_all(engines: Engines, first: int, n: int, shared: Ints) -> None:
    """Each engine schedules its step; all of them end when the longest one does."""
    longest, n_tokens = st.ZERO, st.ZERO
    for r in range(first, first + n):
        begin(held(one_engine(engines, r)))
        s = engines.scalar[r]
        lasts = ((s[st.FLIGHT_END] - s[st.NOW]) << st.FRAC_BITS) + s[st.FLIGHT_FRAC] - s[st.FRAC]
        longest = max(longest, lasts)
        n_checked = s[st.N_DECODES] * engines.limit[engines.pool[r], st.CHECKED]
        n_tokens += s[st.PREFILL_TOKENS] + n_checked
    longest += shared[min(n_tokens, shared.shape[0] - 1)]
    for r in range(first, first + n):
        s = engines.scalar[r]
        lasts = longest + s[st.FRAC]
        s[st.FLIGHT_END] = s[st.NOW] + (lasts >> st.FRAC_BITS)
        s[st.FLIGHT_FRAC] = lasts & st.FRAC_MASK


@part
def _is_idle(engines: Engines, first: int, n: int) -> bool:
    """Nothing runs and nobody waits; a group that runs nothing sleeps until somebody comes."""
    earliest = st.FOREVER
    for r in range(first, first + n):
        s = engines.scalar[r]
        see_arrivals(held(one_engine(engines, r)))
        if s[st.N_RUNNING] > 0 or s[st.READY] >= 0:
            return False
        head = s[st.WAIT_HEAD]
        if head >= 0:
            earliest = min(earliest, engines.request[head, st.ARRIVE])
    if earliest == st.FOREVER:
        return True
    if earliest > engines.scalar[first, st.NOW]:
        for r in range(first, first + n):
            s = engines.scalar[r]
            s[st.NOW], s[st.FRAC] = earliest, 0
            s[st.KNOWN] = earliest
            see_arrivals(held(one_engine(engines, r)))
    return False


@part
def _advance_all(engines: Engines, first: int, n: int, until: int, shared: Ints) -> int:
    """As `advance` of one engine, for a group; no steps are jumped over."""
    s = engines.scalar[first]
    while True:
        if s[st.IN_FLIGHT]:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            for r in range(first, first + n):
                complete(held(one_engine(engines, r)))
        if _is_idle(engines, first, n):
            return st.FOREVER
        if s[st.NOW] >= until:
            return int(s[st.NOW])
        _begin_all(engines, first, n, shared)


@part
def _earliest(event: Ints, first: int, n: int) -> int:
    """When the first of a group's engines has something to report."""
    found = event[first]
    for r in range(first + 1, first + n):
        found = min(found, event[r])
    return int(found)


@kernel
def run_lockstep(
    engines: Engines, accepted: Ints, pairs: Ints, seen: Ints, group: Ints, shared: Ints
) -> None:
    """Requests are routed to engines; groups of engines step together.

    `group` is the engines of one group and the router's policy; `shared` is what a group does
    together, in ticks by the tokens of all its engines.
    """
    event, load, n = seen[EVENT], seen[LOAD], accepted.shape[0]
    size, policy = group[0], group[1]
    for turn in range(n + 1):
        is_over = turn == n
        i = st.NONE if is_over else accepted[turn]
        now = engines.limit[0, st.LAST_INSTANT] if is_over else engines.request[i, st.ARRIVE]
        for first in range(0, event.shape[0], size):
            if is_over or _earliest(event, first, size) <= now:
                ahead = _advance_all(engines, first, size, now, shared)
                for r in range(first, first + size):
                    event[r], load[r] = ahead, engines.scalar[r, st.OUTSTANDING]
        if is_over:
            return
        route(engines, i, turn, pairs, policy, seen)

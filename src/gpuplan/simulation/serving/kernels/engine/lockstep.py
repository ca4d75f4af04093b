"""Engines that step together: data-parallel ranks whose attention shares one set of experts.

Every iteration of a group begins and ends for all of its engines at the same instants. It lasts
as long as the longest of their own parts and what they do together, by the tokens of all. An
engine without work takes part: it has to serve the experts.
"""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.jump import (
    LONGEST,
    LONGEST_GAP,
    fitting,
    on_line,
)
from gpuplan.simulation.serving.kernels.engine.kinds import lodge_all, one_engine
from gpuplan.simulation.serving.kernels.engine.leaving import wake
from gpuplan.simulation.serving.kernels.engine.lists import learn, next_finish
from gpuplan.simulation.serving.kernels.engine.loop import (
    MUST_SCHEDULE,
    TAKEN,
    complete,
    has_no_prompt,
    skip,
)
from gpuplan.simulation.serving.kernels.engine.positions import (
    blocks_ahead,
    steps_reaching,
)
from gpuplan.simulation.serving.kernels.engine.queue import see_arrivals
from gpuplan.simulation.serving.kernels.engine.runs import EVENT, LOAD, route
from gpuplan.simulation.serving.kernels.engine.schedule import begin
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine, Engines, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import kernel, lodged, part


@part
def begin_all(engines: Engines, first: int, n: int, shared: Ints) -> None:
    """Each engine schedules its step; all of them end when the longest one does."""
    longest, n_tokens = st.ZERO, st.ZERO
    for r in range(first, first + n):
        begin(lodged(one_engine(engines, r), engines.home[r]))
        s = engines.scalar[r]
        lasts = ((s[st.FLIGHT_END] - s[st.NOW]) << st.FRAC_BITS) + s[st.FLIGHT_FRAC] - s[st.FRAC]
        longest = max(longest, lasts)
        n_tokens += s[st.FLIGHT_TOKENS]
        if s[st.FLIGHT_TOKENS] == 0:
            engines.flight_s[r, 0] = engines.flight_s[r, 1] = 0.0
    longest += shared[min(n_tokens, shared.shape[0] - 1)]
    for r in range(first, first + n):
        s = engines.scalar[r]
        lasts = longest + s[st.FRAC]
        s[st.FLIGHT_END] = s[st.NOW] + (lasts >> st.FRAC_BITS)
        s[st.FLIGHT_FRAC] = lasts & st.FRAC_MASK


@part
def is_idle(engines: Engines, first: int, n: int) -> bool:
    """Nothing runs and nobody waits; a group that runs nothing sleeps until somebody comes."""
    earliest = st.FOREVER
    for r in range(first, first + n):
        s = engines.scalar[r]
        e = lodged(one_engine(engines, r), engines.home[r])
        see_arrivals(e)
        wake(e)
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
            see_arrivals(lodged(one_engine(engines, r), engines.home[r]))
    return False


@part
def _plan_all(engines: Engines, first: int, n: int) -> tuple[int, int]:
    """Decode steps that nothing in the engines of a group ends; when somebody comes who may join.

    0 steps where one must be scheduled. Each engine notes its first step and how much longer every
    further one is.
    """
    most, heard, now = st.ZERO, st.FOREVER, engines.scalar[first, st.NOW]
    for r in range(first, first + n):
        e, s = lodged(one_engine(engines, r), engines.home[r]), engines.scalar[r]
        if not e.limit[st.IS_JUMPING] or e.limit[st.CHECKED] != 1 or not has_no_prompt(e):
            return st.ZERO, heard
        if s[st.N_LEAVING] > 0:
            return st.ZERO, heard
        if s[st.WAIT_HEAD] >= 0 and (s[st.BLOCKED] == 0 or e.limit[st.IS_PRIORITY]):
            heard = min(heard, e.request[s[st.WAIT_HEAD], st.ARRIVE])
            # Who has come may be heard of after the next step, or fit where another does not.
            if heard <= now:
                return st.ZERO, heard
        s[st.PLAN_LASTS] = s[st.PLAN_BLOCKS] = 0
        if s[st.N_DECODES] > 0:
            k, _ = fitting(e, steps_reaching(e, next_finish(e.scalar, e.word)))
            if k == 0:
                return st.ZERO, heard
            k, begins, growth, regime = on_line(e, k)
            s[st.PLAN_LASTS], s[st.PLAN_BLOCKS], s[st.PLAN_REGIME] = begins, growth, regime
            most = k if most == 0 else min(most, k)
    return most, heard


@part
def _longest(engines: Engines, first: int, n: int) -> int:
    """The engine whose next step is the longest; of equals, the one that grows most."""
    best = first
    for r in range(first + 1, first + n):
        s, b = engines.scalar[r], engines.scalar[best]
        is_tie = s[st.PLAN_LASTS] == b[st.PLAN_LASTS]
        if s[st.PLAN_LASTS] > b[st.PLAN_LASTS] or (
            is_tie and s[st.PLAN_BLOCKS] > b[st.PLAN_BLOCKS]
        ):
            best = r
    return best


@part
def _while_longest(engines: Engines, first: int, n: int, best: int, k: int) -> int:
    """Steps, up to k, for which that engine's stay the longest."""
    b = engines.scalar[best]
    for r in range(first, first + n):
        s = engines.scalar[r]
        gain = s[st.PLAN_BLOCKS] - b[st.PLAN_BLOCKS]
        if gain > 0:
            k = min(k, (b[st.PLAN_LASTS] - s[st.PLAN_LASTS]) // gain + 1)
    return k


@part
def _lasting(k: int, begins: int, growth: int) -> int:
    """Duration of k steps, each longer than the one before by `growth`."""
    return k * begins + growth * (k * (k - 1) // 2)


@part
def _within(k: int, begins: int, growth: int, gap: int) -> int:
    """The most steps, up to k, that last no longer than `gap`."""
    if _lasting(k, begins, growth) <= gap:
        return k
    linear = begins - 0.5 * growth
    guess = int(2.0 * gap / (linear + np.sqrt(linear * linear + 2.0 * growth * gap)))
    guess = min(max(guess, 0), k)
    while guess > 0 and _lasting(guess, begins, growth) > gap:
        guess -= 1
    while guess < k and _lasting(guess + 1, begins, growth) <= gap:
        guess += 1
    return guess


@part
def _ending_by(lead: Ints, at: int, k: int, line: tuple[int, int]) -> int:
    """The most steps, up to k, that end at this instant or before, parts of a picosecond aside."""
    ahead = at - lead[st.NOW]
    if ahead >= LONGEST_GAP:
        return k
    gap = ((ahead + 1) << st.FRAC_BITS) - 1 - lead[st.FRAC]
    return _within(k, line[0], line[1], gap)


@part
def _n_together(engines: Engines, first: int, n: int) -> int:
    """Tokens of a step in which all engines decode."""
    n_tokens = st.ZERO
    for r in range(first, first + n):
        n_tokens += engines.scalar[r, st.N_DECODES]
    return n_tokens


@part
def jump_all(engines: Engines, first: int, n: int, until: int, last: int, shared: Ints) -> int:
    """Take as many decode steps at once as nothing can interrupt.

    Those that end by `last`: TAKEN, or MUST_SCHEDULE. Where they end after `until`, that instant,
    and nothing is taken: what arrives before may still change the plan.
    """
    k, heard = _plan_all(engines, first, n)
    if k == 0:
        return MUST_SCHEDULE
    best = _longest(engines, first, n)
    k = _while_longest(engines, first, n, best, k)
    lead = engines.scalar[best]
    begins = lead[st.PLAN_LASTS] + shared[min(_n_together(engines, first, n), shared.shape[0] - 1)]
    growth = lead[st.PLAN_BLOCKS]
    if float(k) * (begins + float(k) * growth) > LONGEST:
        k = max(1, LONGEST // (begins + k * growth))
    # Every step begins before somebody comes.
    k = min(k, _ending_by(lead, heard - 1, k, (begins, growth)) + 1)
    k = _ending_by(lead, last, k, (begins, growth))
    if k == 0:
        return MUST_SCHEDULE
    lasts = _lasting(k, begins, growth) + lead[st.FRAC]
    earlier = _lasting(k - 1, begins, growth) + lead[st.FRAC]
    end = (lead[st.NOW] + (lasts >> st.FRAC_BITS), lasts & st.FRAC_MASK)
    begun = lead[st.NOW] + (earlier >> st.FRAC_BITS)
    if end[0] > until:
        return int(end[0])
    for r in range(first, first + n):
        e, s = lodged(one_engine(engines, r), engines.home[r]), engines.scalar[r]
        if s[st.N_DECODES] == 0:
            _sit_out(e, end, begun)
        else:
            needed = blocks_ahead(e, k)
            skip(e, (k, needed, s[st.PLAN_REGIME]), end, begun)
    return TAKEN


@part
def _sit_out(e: AnyEngine, end: tuple[int, int], begun: int) -> None:
    """An engine without work waits for the others."""
    s = e.scalar
    account(e.scalar, e.bins, end[0], float(e.limit[st.N_BLOCKS] - s[st.FREE]), (0.0, 0.0))
    s[st.NOW], s[st.FRAC] = end
    learn(e.scalar, e.limit, begun)


@part
def _advance_all(engines: Engines, first: int, n: int, until: int, shared: Ints) -> int:
    """As `advance` of one engine, for a group."""
    s = engines.scalar[first]
    while True:
        if s[st.IN_FLIGHT]:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            for r in range(first, first + n):
                complete(lodged(one_engine(engines, r), engines.home[r]))
        if is_idle(engines, first, n):
            return st.FOREVER
        if s[st.NOW] >= until:
            return int(s[st.NOW])
        planned = jump_all(engines, first, n, until, st.FOREVER, shared)
        if planned > TAKEN:
            return planned
        if planned == MUST_SCHEDULE:
            begin_all(engines, first, n, shared)


@part
def earliest(event: Ints, first: int, n: int) -> int:
    """When the first of a group's engines has something to report."""
    found = event[first]
    for r in range(first + 1, first + n):
        found = min(found, event[r])
    return int(found)


@kernel
def run_lockstep(
    engines: Engines, accepted: Ints, pairs: Ints, observed: Ints, group: Ints, shared: Ints
) -> None:
    """Requests are routed to engines; groups of engines step together.

    `group` is the engines of one group and the router's policy; `shared` is what a group does
    together, in ticks by the tokens of all its engines.
    """
    lodge_all(engines)
    event, load, n = observed[EVENT], observed[LOAD], accepted.shape[0]
    size, policy = group[0], group[1]
    for turn in range(n + 1):
        is_over = turn == n
        i = st.NONE if is_over else accepted[turn]
        now = engines.limit[0, st.LAST_INSTANT] if is_over else engines.request[i, st.ARRIVE]
        for first in range(0, event.shape[0], size):
            if is_over or earliest(event, first, size) <= now:
                ahead = _advance_all(engines, first, size, now, shared)
                for r in range(first, first + size):
                    event[r], load[r] = ahead, engines.scalar[r, st.OUTSTANDING]
        if is_over:
            return
        route(engines, i, turn, pairs, policy, observed)

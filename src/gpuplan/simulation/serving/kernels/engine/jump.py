"""How many decode steps nothing can interrupt, and how long they last, exactly."""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.cost import N_LINES, SOLE, decode_line
from gpuplan.simulation.serving.kernels.engine.holding import is_in_debt
from gpuplan.simulation.serving.kernels.engine.lists import blocks_between, next_finish
from gpuplan.simulation.serving.kernels.engine.positions import (
    blocks_ahead,
    lag,
    mean_gain,
    moved,
    position_after,
    steps_beginning,
    steps_reaching,
)
from gpuplan.simulation.serving.kernels.engine.queue import BY_BLOCKS
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part

LONGEST = 1 << 60  # fixed-point ticks of one jump: 17 s; longer ones are made of several
LONGEST_GAP = 1 << 45  # picoseconds


@part
def fitting(e: AnyEngine, k: int) -> tuple[int, int]:
    """The most steps, up to k, whose blocks are free, and these blocks."""
    s, bits = e.scalar, e.limit[st.BLOCK_BITS]
    if is_in_debt(e):
        return 0, 0
    needed = blocks_ahead(e, k)
    if needed <= s[st.FREE]:
        return k, needed
    rounds = s[st.FREE] // s[st.N_DECODES]
    at = position_after(e, -1 - lag(e)) + (rounds << bits)
    left = s[st.FREE] - rounds * s[st.N_DECODES]
    more = blocks_between(e.scalar, e.limit, at + 1, st.ONE)
    while more <= left:
        at += 1
        left -= more
        more = blocks_between(e.scalar, e.limit, at + 1, st.ONE)
    k = max(0, steps_beginning(e, at)) + lag(e) if at >= position_after(e, -lag(e)) else 0
    return k, blocks_ahead(e, k)


@part
def on_line(e: AnyEngine, k: int) -> tuple[int, int, int, int]:
    """Steps, up to k, on the line that rules now; the first step, its growth, the regime."""
    s = e.scalar
    n, context, at = s[st.N_DECODES], s[st.CONTEXT], s[st.STEP]
    first, line, regime = decode_line(e)
    far = position_after(e, k - 1) - at
    if regime == 0 and context + far * n > n * e.limit[st.WINDOW]:
        k = steps_beginning(e, at + (n * e.limit[st.WINDOW] - context) // n)
        far = position_after(e, k - 1) - at
    growth = n * e.slopes[regime, line]
    n_others = 0 if e.lines[regime, n, SOLE] >= 0 else N_LINES
    for other in range(n_others):
        value = e.lines[regime, n, other] + e.slopes[regime, other] * context
        gain = n * e.slopes[regime, other] - growth
        if value + far * (gain + growth) > first + far * growth:
            k = steps_beginning(e, at + (first - value) // gain)
            far = position_after(e, k - 1) - at
    last = first + far * growth
    if float(k) * last > LONGEST:
        k = max(1, LONGEST // last)
    return k, first, growth, regime


@part
def lasting(e: AnyEngine, k: int, first: int, growth: int) -> int:
    """Duration of k steps, the first so long, each longer by `growth` for every token gained."""
    return k * first + growth * moved(e, k)


@part
def fewest_reaching(e: AnyEngine, gap: int, k: int, first: int, growth: int) -> int:
    """The fewest steps, up to k, that last at least `gap`; k steps do."""
    steep = growth * mean_gain(e)
    linear = first - 0.5 * steep
    guess = int(2.0 * gap / (linear + np.sqrt(linear * linear + 2.0 * steep * gap))) + 1
    guess = min(guess, k)
    while guess > 1 and lasting(e, guess - 1, first, growth) >= gap:
        guess -= 1
    while lasting(e, guess, first, growth) < gap:
        guess += 1
    return guess


@part
def _until(e: AnyEngine, at: int, k: int, line: tuple[int, int]) -> int:
    """Steps, up to k, of which only the last may end at this instant or later."""
    s = e.scalar
    ahead = at - s[st.NOW]
    if ahead >= LONGEST_GAP:
        return k
    gap = (max(ahead, 0) << st.FRAC_BITS) - s[st.FRAC]
    if gap >= lasting(e, k, line[0], line[1]):
        return k
    return fewest_reaching(e, gap, k, line[0], line[1])


@part
def _next_heard(e: AnyEngine) -> int:
    """When somebody comes who could be admitted."""
    s = e.scalar
    head = s[st.WAIT_HEAD]
    if s[st.READY] >= 0 and s[st.BLOCKED] == 0:
        return int(s[st.NOW])
    # With priorities, one who comes later may fit where the one before did not.
    is_heard = s[st.BLOCKED] == 0 or (e.limit[st.IS_PRIORITY] and s[st.BLOCKED] == BY_BLOCKS)
    return int(e.request[head, st.ARRIVE]) if head >= 0 and is_heard else st.FOREVER


@part
def plan_jump(e: AnyEngine) -> tuple[int, int, int, int, int]:
    """Steps, their duration, blocks and regime, and the duration of all but the last of them.

    0 steps where one must be scheduled. A finish ends a jump and is part of it; an arrival that
    could be admitted ends it as soon as a step could see it.
    """
    s = e.scalar
    most, needed = fitting(e, steps_reaching(e, next_finish(e.scalar, e.word)))
    if most == 0:
        return 0, 0, 0, 0, 0
    k, first, growth, regime = on_line(e, most)
    line, arrival = (first, growth), _next_heard(e)
    # One place that calls, two instants: what must stop the engine, and who comes.
    for which in range(2):
        at = s[st.STOP] if which == 0 else arrival
        is_ahead = which == 1 and e.limit[st.IS_AHEAD] == 1
        found = 0 if is_ahead and at <= s[st.NOW] else _until(e, at, k, line)
        k = min(k, found + int(is_ahead))
    if k < most:
        needed = blocks_ahead(e, k)
    lasts, earlier = lasting(e, k, first, growth), lasting(e, k - 1, first, growth)
    return k, lasts, needed, regime, earlier

"""How many decode steps nothing can interrupt, and how long they last, exactly."""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.cost import N_LINES, SOLE, decode_line
from gpuplan.simulation.serving.kernels.engine.state import Engine, blocks_between, next_finish
from gpuplan.simulation.serving.kernels.jit.compiled import part

LONGEST = 1 << 60  # fixed-point ticks of one jump: 17 s; longer ones are made of several
LONGEST_GAP = 1 << 45  # picoseconds


@part
def _fitting(e: Engine, k: int) -> tuple[int, int]:
    """The most steps, up to k, whose blocks are free, and those blocks."""
    s, bits = e.scalar, e.limit[st.BLOCK_BITS]
    needed = blocks_between(e.scalar, e.limit, s[st.STEP], k)
    if needed <= s[st.FREE]:
        return k, needed
    rounds = s[st.FREE] // s[st.N_DECODES]
    k, needed = rounds << bits, rounds * s[st.N_DECODES]
    more = blocks_between(e.scalar, e.limit, s[st.STEP] + k, st.ONE)
    while needed + more <= s[st.FREE]:
        k += 1
        needed += more
        more = blocks_between(e.scalar, e.limit, s[st.STEP] + k, st.ONE)
    return k, needed


@part
def lasting(k: int, first: int, growth: int) -> int:
    """k steps, the first so long and each longer than the one before by `growth`."""
    return k * first + growth * ((k * (k - 1)) >> 1)


@part
def _fewest_reaching(gap: int, k: int, first: int, growth: int) -> int:
    """The fewest steps, up to k, that last at least `gap`; k steps do."""
    linear = first - 0.5 * growth
    guess = int(2.0 * gap / (linear + np.sqrt(linear * linear + 2.0 * growth * gap))) + 1
    guess = min(guess, k)
    while guess > 1 and lasting(guess - 1, first, growth) >= gap:
        guess -= 1
    while lasting(guess, first, growth) < gap:
        guess += 1
    return guess


@part
def _until(e: Engine, at: int, k: int, line: tuple[int, int]) -> int:
    """Steps, up to k, of which only the last may end at this instant or later."""
    s = e.scalar
    if at - s[st.NOW] < LONGEST_GAP:
        gap = (max(at - s[st.NOW], 0) << st.FRAC_BITS) - s[st.FRAC]
        if gap < lasting(k, line[0], line[1]):
            return _fewest_reaching(gap, k, line[0], line[1])
    return k


@part
def _until_known(e: Engine, at: int, k: int, line: tuple[int, int]) -> int:
    """Steps, up to k, after which a step may have in it who comes at this instant."""
    if e.limit[st.IS_AHEAD] == 0:
        return _until(e, at, k, line)
    return min(k, 1 + (0 if at <= e.scalar[st.NOW] else _until(e, at, k, line)))


@part
def on_line(e: Engine, k: int) -> tuple[int, int, int, int]:
    """Steps, up to k, on the line that rules now; the first step, its growth, the regime."""
    n, context = e.scalar[st.N_DECODES], e.scalar[st.CONTEXT]
    first, line, regime = decode_line(e)
    if regime == 0 and context + (k - 1) * n > n * e.limit[st.WINDOW]:
        k = (n * e.limit[st.WINDOW] - context) // n + 1
    growth = n * e.slopes[regime, line]
    last = first + (k - 1) * growth
    n_others = 0 if e.lines[regime, n, SOLE] >= 0 else N_LINES
    for other in range(n_others):
        value = e.lines[regime, n, other] + e.slopes[regime, other] * context
        gain = n * e.slopes[regime, other] - growth
        if value + (k - 1) * (gain + growth) > last:
            k = (first - value) // gain + 1
            last = first + (k - 1) * growth
    if float(k) * last > LONGEST:
        k = max(1, LONGEST // last)
    return k, first, growth, regime


@part
def plan_jump(e: Engine) -> tuple[int, int, int, int, int]:
    """Steps, their duration, blocks and regime, and the duration of all but the last of them.

    0 steps where one must be scheduled. A finish ends a jump and is part of it; an arrival that
    could be admitted ends it as soon as a step could see it.
    """
    s = e.scalar
    k, needed = _fitting(e, next_finish(e.scalar, e.word) - s[st.STEP])
    if k == 0:
        return 0, 0, 0, 0, 0
    planned = k
    k, first, growth, regime = on_line(e, k)
    k = _until(e, s[st.STOP], k, (first, growth))
    head = s[st.WAIT_HEAD]
    if head >= 0 and not s[st.BLOCKED]:
        k = _until_known(e, e.request[head, st.ARRIVE], k, (first, growth))
    if k < planned:
        needed = blocks_between(e.scalar, e.limit, s[st.STEP], k)
    return k, lasting(k, first, growth), needed, regime, lasting(k - 1, first, growth)

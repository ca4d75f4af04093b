"""How far decodes move: one token a step, or more where drafts are accepted.

All decodes of an engine move together: after t steps by floor(t g) tokens, g being what a step
gains on average; or by what was drawn for each step, as long tables of sums know it. So sums over
many steps have closed forms in integers.
"""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import featured as ft
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.cost import N_LINES, SOLE, decode_line
from gpuplan.simulation.serving.kernels.engine.featured import AnyEngine
from gpuplan.simulation.serving.kernels.engine.jump import LONGEST, LONGEST_GAP
from gpuplan.simulation.serving.kernels.engine.queue import BY_BLOCKS
from gpuplan.simulation.serving.kernels.engine.state import Ints, blocks_between, next_finish
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare

SPREAD = 2654435761  # 2^32 / golden ratio: neighbours land far apart


@part
def _is_drawn(e: AnyEngine) -> bool:
    return bool(e.limit[st.GAIN_FRAC] == 0)


@part
def position(e: AnyEngine, tick: int) -> int:
    """Tokens that a decode has moved by after so many steps."""
    if _is_drawn(e):
        return drawn_position(e.gained, tick)
    return int((tick * e.limit[st.GAIN_FRAC]) >> st.GAIN_BITS)


@part
def first_tick(e: AnyEngine, now: int) -> int:
    """Where in the draws an engine begins that starts at this instant."""
    return int((((now >> 20) & 0x7FFFFFFF) * SPREAD) % ft.N_DRAWN) if _is_drawn(e) else 0


@rare
def drawn_position(gained: Ints, tick: int) -> int:
    """Tokens that were drawn for all ticks before this one."""
    turn, at = tick // ft.N_DRAWN, tick % ft.N_DRAWN
    return int(turn * gained[ft.POSITIONS, ft.N_DRAWN] + gained[ft.POSITIONS, at])


@rare
def drawn_tick(gained: Ints, at: int) -> int:
    """The first tick whose position is at least this."""
    total = gained[ft.POSITIONS, ft.N_DRAWN]
    turn = at // total
    rest, low, high = at - turn * total, 0, ft.N_DRAWN
    while low < high:
        middle = (low + high) >> 1
        if gained[ft.POSITIONS, middle] < rest:
            low = middle + 1
        else:
            high = middle
    return int(turn * ft.N_DRAWN + low)


@rare
def positions_before(gained: Ints, tick: int) -> int:
    """Sum of the positions of all ticks before this one."""
    n, total = ft.N_DRAWN, gained[ft.POSITIONS, ft.N_DRAWN]
    turn, at = tick // n, tick % n
    whole = turn * gained[ft.SUMS, n] + n * total * ((turn * (turn - 1)) >> 1)
    return int(whole + gained[ft.SUMS, at] + at * turn * total)


@part
def coming_gain(e: AnyEngine) -> int:
    """Tokens of the step to come."""
    return int(position(e, e.scalar[st.TICK] + 1) - e.scalar[st.STEP])


@part
def _steps_reaching(e: AnyEngine, at: int) -> int:
    """The fewest steps after which the position is at least this."""
    if _is_drawn(e):
        return drawn_tick(e.gained, at) - int(e.scalar[st.TICK])
    gain = e.limit[st.GAIN_FRAC]
    return int(((at << st.GAIN_BITS) + gain - 1) // gain - e.scalar[st.TICK])


@part
def _steps_beginning(e: AnyEngine, at: int) -> int:
    """The most steps that all begin at this position or before."""
    if _is_drawn(e):
        return drawn_tick(e.gained, at + 1) - int(e.scalar[st.TICK])
    return int((((at + 1) << st.GAIN_BITS) - 1) // e.limit[st.GAIN_FRAC] - e.scalar[st.TICK] + 1)


@rare
def _floor_sum(n: int, a: int, b: int) -> int:
    """Sum over j below n of floor((a j + b) / 2^GAIN_BITS), by Euclid's steps."""
    total, m = 0, st.ONE_TOKEN
    while True:
        if a >= m:
            total += (n * (n - 1) >> 1) * (a // m)
            a %= m
        if b >= m:
            total += n * (b // m)
            b %= m
        top = a * n + b
        if top < m:
            return int(total)
        n, b = top // m, top % m
        m, a = a, m


@part
def moved(e: AnyEngine, k: int) -> int:
    """Sum over the next k steps of the tokens moved before each of them."""
    gain = e.limit[st.GAIN_FRAC]
    if gain == st.ONE_TOKEN:
        return (k * (k - 1)) >> 1
    if _is_drawn(e):
        now = e.scalar[st.TICK]
        far = positions_before(e.gained, now + k) - positions_before(e.gained, now)
        return int(far - k * e.scalar[st.STEP])
    return _floor_sum(k, gain, (e.scalar[st.TICK] * gain) & (st.ONE_TOKEN - 1))


@part
def _lasting(e: AnyEngine, k: int, first: int, growth: int) -> int:
    return k * first + growth * moved(e, k)


@part
def _blocks_between(e: AnyEngine, after: int, upto: int) -> int:
    """Blocks that the decodes need on the way from one position to another."""
    return blocks_between(e.scalar, e.limit, after + 1, upto - after)


@part
def due_blocks(e: AnyEngine) -> int:
    """Blocks that the decodes need in the step to come."""
    s = e.scalar
    return _blocks_between(e, s[st.STEP] - s[st.GAIN], s[st.STEP])


@part
def _fitting(e: AnyEngine, k: int) -> int:
    """The most steps, up to k, whose blocks are free."""
    s, bits = e.scalar, e.limit[st.BLOCK_BITS]
    after = s[st.STEP] - s[st.GAIN]
    last = position(e, s[st.TICK] + k - 1)
    if _blocks_between(e, after, last) <= s[st.FREE]:
        return k
    rounds = s[st.FREE] // s[st.N_DECODES]
    at, left = after + (rounds << bits), s[st.FREE] - rounds * s[st.N_DECODES]
    more = blocks_between(e.scalar, e.limit, at + 1, st.ONE)
    while more <= left:
        at += 1
        left -= more
        more = blocks_between(e.scalar, e.limit, at + 1, st.ONE)
    return max(0, _steps_beginning(e, at)) if at >= s[st.STEP] else 0


@part
def _on_line(e: AnyEngine, k: int) -> tuple[int, int, int, int]:
    """Steps, up to k, on the line that rules now; the first step, its growth, the regime."""
    s = e.scalar
    n, context, at = s[st.N_DECODES], s[st.CONTEXT], s[st.STEP]
    first, line, regime = decode_line(e)
    far = position(e, s[st.TICK] + k - 1) - at
    if regime == 0 and context + far * n > n * e.limit[st.WINDOW]:
        far = (n * e.limit[st.WINDOW] - context) // n
        k = _steps_beginning(e, at + far)
        far = position(e, s[st.TICK] + k - 1) - at
    growth = n * e.slopes[regime, line]
    n_others = 0 if e.lines[regime, n, SOLE] >= 0 else N_LINES
    for other in range(n_others):
        value = e.lines[regime, n, other] + e.slopes[regime, other] * context
        gain = n * e.slopes[regime, other] - growth
        if value + far * (gain + growth) > first + far * growth:
            k = _steps_beginning(e, at + (first - value) // gain)
            far = position(e, s[st.TICK] + k - 1) - at
    last = first + far * growth
    if float(k) * last > LONGEST:
        k = max(1, LONGEST // last)
    return k, first, growth, regime


@part
def _fewest_reaching(e: AnyEngine, gap: int, k: int, first: int, growth: int) -> int:
    """The fewest steps, up to k, that last at least `gap`; k steps do."""
    mean = e.limit[st.GAIN_FRAC] / st.ONE_TOKEN
    if _is_drawn(e):
        mean = e.gained[ft.POSITIONS, ft.N_DRAWN] / ft.N_DRAWN
    steep = growth * mean
    linear = first - 0.5 * steep
    guess = int(2.0 * gap / (linear + np.sqrt(linear * linear + 2.0 * steep * gap)))
    guess = min(max(guess, 1), k)
    while guess > 1 and _lasting(e, guess - 1, first, growth) >= gap:
        guess -= 1
    while _lasting(e, guess, first, growth) < gap:
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
    if gap >= _lasting(e, k, line[0], line[1]):
        return k
    return _fewest_reaching(e, gap, k, line[0], line[1])


@part
def plan_featured(e: AnyEngine) -> tuple[int, int, int, int, int]:
    """As of the plain engine: steps, their duration, blocks and regime, and all but the last."""
    s = e.scalar
    k = _fitting(e, _steps_reaching(e, next_finish(e.scalar, e.word)))
    if k == 0:
        return 0, 0, 0, 0, 0
    k, first, growth, regime = _on_line(e, k)
    head, line = s[st.WAIT_HEAD], (first, growth)
    # Of the urgent, one who comes later may fit where the one before did not.
    is_heard = s[st.BLOCKED] == 0 or (e.limit[st.IS_PRIORITY] and s[st.BLOCKED] == BY_BLOCKS)
    instant = e.request[head, st.ARRIVE] if head >= 0 and is_heard else st.FOREVER
    # One place that calls, two instants: what must stop the engine, and who comes.
    for which in range(2):
        at = s[st.STOP] if which == 0 else instant
        is_ahead = which == 1 and e.limit[st.IS_AHEAD] == 1
        found = 0 if is_ahead and at <= s[st.NOW] else _until(e, at, k, line)
        k = min(k, found + int(is_ahead))
    needed = _blocks_between(e, s[st.STEP] - s[st.GAIN], position(e, s[st.TICK] + k - 1))
    earlier = _lasting(e, k - 1, first, growth)
    return k, _lasting(e, k, first, growth), needed, regime, earlier

"""How far decodes move: one token a step, or more with speculative decoding.

All decodes of an engine move together: after t steps by floor(t g) tokens, g being what a step
gains on average; or by what was drawn for each step, as long tables of sums know it. So sums over
many steps have closed forms in integers. Engines without policies gain one token a step.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.lists import blocks_between
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare

SPREAD = 2654435761  # 2^32 / golden ratio: neighbours land far apart


def _no_draft_tokens(_: AnyEngine) -> int:
    return 0


@policy(otherwise=_no_draft_tokens)
def n_draft_tokens(e: AnyEngine) -> int:
    """Draft tokens that a decode verifies in a step beyond its own token."""
    return int(e.limit[st.CHECKED] - 1)


@part
def _is_drawn(e: AnyEngine) -> bool:
    return bool(e.limit[st.GAIN_FRAC] == 0)


def _one_a_step(e: AnyEngine, k: int) -> int:
    return int(e.scalar[st.STEP] + k)


@policy(otherwise=_one_a_step)
def position_after(e: AnyEngine, k: int) -> int:
    """Tokens that a decode has moved by, in all, after k more steps."""
    tick = e.scalar[st.TICK] + k
    if _is_drawn(e):
        return drawn_position(e.gained, tick)
    return int((tick * e.limit[st.GAIN_FRAC]) >> st.GAIN_BITS)


@part
def begin_draws(e: AnyEngine, now: int) -> None:
    """An engine that starts at this instant begins somewhere in the draws, at its position."""
    start = ((now >> 20) & 0x7FFFFFFF) * SPREAD
    e.scalar[st.TICK] = start % st.N_DRAWN if _is_drawn(e) else 0
    e.scalar[st.STEP], e.scalar[st.GAIN] = position_after(e, st.ZERO), 0


@rare
def drawn_position(gained: Ints, tick: int) -> int:
    """Tokens that were drawn for all ticks before this one."""
    turn, at = tick // st.N_DRAWN, tick % st.N_DRAWN
    return int(turn * gained[st.POSITIONS, st.N_DRAWN] + gained[st.POSITIONS, at])


@rare
def drawn_tick(gained: Ints, at: int) -> int:
    """The first tick whose position is at least this."""
    total = gained[st.POSITIONS, st.N_DRAWN]
    turn = at // total
    rest, low, high = at - turn * total, 0, st.N_DRAWN
    while low < high:
        middle = (low + high) >> 1
        if gained[st.POSITIONS, middle] < rest:
            low = middle + 1
        else:
            high = middle
    return int(turn * st.N_DRAWN + low)


@rare
def positions_before(gained: Ints, tick: int) -> int:
    """Sum of the positions of all ticks before this one."""
    n, total = st.N_DRAWN, gained[st.POSITIONS, st.N_DRAWN]
    turn, at = tick // n, tick % n
    whole = turn * gained[st.SUMS, n] + n * total * ((turn * (turn - 1)) >> 1)
    return int(whole + gained[st.SUMS, at] + at * turn * total)


def _steps_to(e: AnyEngine, at: int) -> int:
    return int(at - e.scalar[st.STEP])


@policy(otherwise=_steps_to)
def steps_reaching(e: AnyEngine, at: int) -> int:
    """The fewest steps after which the position is at least this."""
    if _is_drawn(e):
        return drawn_tick(e.gained, at) - int(e.scalar[st.TICK])
    gain = e.limit[st.GAIN_FRAC]
    return int(((at << st.GAIN_BITS) + gain - 1) // gain - e.scalar[st.TICK])


def _steps_up_to(e: AnyEngine, at: int) -> int:
    return int(at - e.scalar[st.STEP] + 1)


@policy(otherwise=_steps_up_to)
def steps_beginning(e: AnyEngine, at: int) -> int:
    """The most steps that all begin at this position or before."""
    if _is_drawn(e):
        return drawn_tick(e.gained, at + 1) - int(e.scalar[st.TICK])
    last = (((at + 1) << st.GAIN_BITS) - 1) // e.limit[st.GAIN_FRAC]
    return int(last - e.scalar[st.TICK] + 1)


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


def _moved_by_one(_: AnyEngine, k: int) -> int:
    return (k * (k - 1)) >> 1


@policy(otherwise=_moved_by_one)
def moved(e: AnyEngine, k: int) -> int:
    """Sum over the next k steps of the tokens moved before each of them."""
    gain = e.limit[st.GAIN_FRAC]
    if gain == st.ONE_TOKEN:
        return (k * (k - 1)) >> 1
    if _is_drawn(e):
        now = e.scalar[st.TICK]
        summed = positions_before(e.gained, now + k) - positions_before(e.gained, now)
        return int(summed - k * e.scalar[st.STEP])
    return _floor_sum(k, gain, (e.scalar[st.TICK] * gain) & (st.ONE_TOKEN - 1))


def _one_token(_: AnyEngine) -> float:
    return 1.0


@policy(otherwise=_one_token)
def mean_gain(e: AnyEngine) -> float:
    """Tokens that a step gains on average."""
    if _is_drawn(e):
        return float(e.gained[st.POSITIONS, st.N_DRAWN] / st.N_DRAWN)
    return float(e.limit[st.GAIN_FRAC] / st.ONE_TOKEN)


@part
def move(e: AnyEngine, k: int) -> None:
    """The decodes have taken k steps."""
    s = e.scalar
    begin, at = position_after(e, k - 1), position_after(e, k)
    s[st.TICK] += k
    s[st.CONTEXT] += s[st.N_DECODES] * (at - s[st.STEP])
    s[st.STEP], s[st.GAIN] = at, at - begin


def _no_lag(_: AnyEngine) -> int:
    return 0


@policy(otherwise=_no_lag)
def lag(e: AnyEngine) -> int:
    """1 where a step is drawn up before it is known which drafts of the one before were accepted.

    All of them are given room then, from where the step before began.
    """
    return int(e.limit[st.IS_AHEAD] * min(1, n_draft_tokens(e)))


@part
def n_beyond(e: AnyEngine) -> int:
    """Tokens beyond those that a decode is known to have, for which a step takes room."""
    return int(n_draft_tokens(e) + lag(e) * (n_draft_tokens(e) + 1))


@part
def blocks_ahead(e: AnyEngine, k: int) -> int:
    """Blocks that the decodes lack for the next k steps."""
    after = position_after(e, -1 - lag(e))
    return blocks_between(e.scalar, e.limit, after + 1, position_after(e, k - 1 - lag(e)) - after)

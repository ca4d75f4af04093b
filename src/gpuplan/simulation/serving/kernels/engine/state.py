"""State of the engines as packed rows of integers, and the lists that keep every move O(1).

Time is exact: whole picoseconds and 2^-16 parts of one, so that a sum of steps does not depend
on how it is grouped. Without a prefix cache only the number of blocks matters, not which.
"""

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gpuplan.simulation.serving.kernels.jit.compiled import part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = -1
# A literal argument would be a signature of its own.
ZERO, ONE = cast(int, np.int64(0)), cast(int, np.int64(1))
MINUS_ONE = cast(int, np.int64(-1))
FOREVER = 1 << 62
FRAC_BITS = 16
FRAC_MASK = (1 << FRAC_BITS) - 1
TICKS_PER_S = 1e12
GAIN_BITS = 16
ONE_TOKEN = 1 << GAIN_BITS  # gained by a decode in a step; more where drafts are accepted

# Columns of a request.
# GIVEN: leading tokens whose keys and values come with the request, from another engine.
ARRIVE, INPUT, OUTPUT, MADE, START, FIRST, END, PREEMPTED, NEXT_WAITING, GIVEN = range(10)
N_REQUEST = 10
# Columns of a slot: a request that runs. Its tokens are OFFSET + the engine's step.
ID, OFFSET, BEFORE, AFTER, PEER_BEFORE, PEER_AFTER, FINISH = range(7)
N_SLOT = 8  # one is spare: rows are as long as lines of the processor's cache
# Scalars of an engine. STOP: no jump goes past the first boundary of steps at or after it.
# KNOWN: whoever has come by then may be admitted to the step that begins now.
(
    NOW, FRAC, STEP, FREE, N_DECODES, CONTEXT, N_RUNNING, HEAD, TAIL, WAIT_HEAD, WAIT_TAIL,
    PARTIAL, PARTIAL_DONE, BLOCKED, IN_FLIGHT, FLIGHT_END, FLIGHT_FRAC, MARK, PREFILL_TOKENS,
    PREFILL_PAIRS, N_ENDED, FREE_SLOT, OUTSTANDING, N_STEPS, N_PREEMPTIONS, BIN, BIN_END,
    BIN_WIDTH, COMPUTED, USED_BEFORE, STOP, KNOWN,
    # A jump that was planned and not taken: its plan, and what it was made for.
    PLAN_STEPS, PLAN_LASTS, PLAN_BLOCKS, PLAN_REGIME, PLAN_AT, PLAN_CONTEXT, PLAN_HEAD, PLAN_STOP,
    PLAN_EARLIER,
    # Of engines with more policies: see featured.py.
    TICK, GAIN, N_PARTIALS, PARKED, READY, ORDERED, BARE, OLDEST, NEWEST, ENTRY_TOP, ENTRY_SPARE,
    RUN_TOP, RUN_SPARE, NODE_TOP, NODE_SPARE, ASKED_TOKENS, HIT_TOKENS, N_EVICTED, IS_WALKING,
    PHASES,
) = range(61)  # fmt: skip
# Limits of an engine.
(
    MAX_TOKENS, MAX_SEQUENCES, N_BLOCKS, BLOCK_BITS, IS_RESERVING, WINDOW, LONG_PREFILL,
    IS_JUMPING, LAST_INSTANT, CHECKED, GAIN_FRAC, IS_CACHING, IS_PRIORITY, IS_AHEAD,
) = range(14)  # fmt: skip
N_LIMITS = 14
# What a bin of time sums up.
BUSY_S, BLOCKS_S, COMPUTE_S, READ_S = range(4)
N_SUMS = 4

WORD_BITS = 5
WORD_MASK = 31
# Position of a lone bit: a de Bruijn sequence maps each power of two to its own five bits.
DEBRUIJN = 0x077CB531
BIT_AT = np.zeros(32, dtype=np.int64)
for _bit in range(32):
    BIT_AT[(((1 << _bit) * DEBRUIJN) & 0xFFFFFFFF) >> 27] = _bit


class Engines(NamedTuple):
    """Everything a run reads and writes; state has one row per engine, tables one per pool."""

    scalar: Ints  # (engines, PHASES + block tokens)
    slot: Ints  # (engines, max sequences, N_SLOT)
    ring: Ints  # (engines, steps ahead): first slot that finishes in that step
    word: Ints  # (engines, steps ahead / 32): which ring entries are taken
    bins: Floats  # (engines, bins, N_SUMS)
    flight_s: Floats  # (engines, 2): peak arithmetic and memory time of the step in flight
    request: Ints  # (requests, N_REQUEST)
    pool: Ints  # (engines,): whose limits and tables the engine has
    limit: Ints  # (pools, N_LIMITS)
    lines: Ints  # (pools, regimes, sequences, lines and SOLE): fixed part of a decode step
    slopes: Ints  # (pools, regimes, lines): per token of context
    tokens_s: Floats  # (pools, tokens, 4): device, arithmetic, memory, link
    rows_s: Floats  # (pools, sequences, 2): device, arithmetic
    mix: Floats  # (pools, N_MIX): attention and host


class Engine(NamedTuple):
    """One engine's rows, its pool's tables, and what all share; fields as in `Engines`."""

    scalar: Ints
    slot: Ints
    ring: Ints
    word: Ints
    bins: Floats
    flight_s: Floats
    request: Ints
    limit: Ints
    lines: Ints
    slopes: Ints
    tokens_s: Floats
    rows_s: Floats
    mix: Floats


@part
def one_engine(all_: Engines, r: int) -> Engine:
    """Views of one engine's rows: made once, handed down."""
    p = all_.pool[r]
    return Engine(
        all_.scalar[r], all_.slot[r], all_.ring[r], all_.word[r], all_.bins[r], all_.flight_s[r],
        all_.request, all_.limit[p], all_.lines[p], all_.slopes[p], all_.tokens_s[p],
        all_.rows_s[p], all_.mix[p],
    )  # fmt: skip


@part
def n_blocks(limit: Ints, n_tokens: int) -> int:
    """Blocks that hold so many tokens."""
    bits = limit[BLOCK_BITS]
    return int((n_tokens + (1 << bits) - 1) >> bits)


@part
def learn(s: Ints, limit: Ints, begun: int) -> None:
    """A step that began then has ended now: who may be admitted to the next one?

    An engine that schedules ahead has drawn it up when this one began, unless nothing was left.
    """
    s[KNOWN] = begun if limit[IS_AHEAD] and s[N_RUNNING] > 0 else s[NOW]


@part
def count_phase(s: Ints, limit: Ints, offset: int, more: int) -> None:
    """So many decodes more, or less, that need a block in the same steps as this one.

    Kept as running sums over the steps of a block: any stretch of steps is a difference of two.
    """
    size = 1 << limit[BLOCK_BITS]
    phase = (1 - offset) & (size - 1)
    for j in range(1, size):
        s[PHASES + j] += more if j > phase else 0


@part
def blocks_between(s: Ints, limit: Ints, step: int, k: int) -> int:
    """Blocks that the decodes need in k steps from this one."""
    bits = limit[BLOCK_BITS]
    mask = (1 << bits) - 1
    first = step & mask
    last = first + k
    return int((last >> bits) * s[N_DECODES] + s[PHASES + (last & mask)] - s[PHASES + first])


@part
def link_running(s: Ints, slot: Ints, i: int) -> int:
    """The request takes a slot at the tail of what runs."""
    v = s[FREE_SLOT]
    s[FREE_SLOT] = slot[v, AFTER]
    slot[v, ID], slot[v, BEFORE], slot[v, AFTER] = i, s[TAIL], NONE
    if s[TAIL] >= 0:
        slot[s[TAIL], AFTER] = v
    else:
        s[HEAD] = v
    s[TAIL] = v
    s[N_RUNNING] += 1
    return int(v)


@part
def unlink_running(s: Ints, slot: Ints, v: int) -> None:
    """The slot is free again."""
    before, after = slot[v, BEFORE], slot[v, AFTER]
    if before >= 0:
        slot[before, AFTER] = after
    else:
        s[HEAD] = after
    if after >= 0:
        slot[after, BEFORE] = before
    else:
        s[TAIL] = before
    slot[v, AFTER] = s[FREE_SLOT]
    s[FREE_SLOT] = v
    s[N_RUNNING] -= 1


@part
def note_finish(ring: Ints, word: Ints, slot: Ints, v: int, step: int) -> None:
    """The slot will finish in this step."""
    at = step & (ring.shape[0] - 1)
    first = ring[at]
    slot[v, FINISH], slot[v, PEER_BEFORE], slot[v, PEER_AFTER] = at, NONE, first
    if first >= 0:
        slot[first, PEER_BEFORE] = v
    else:
        word[at >> WORD_BITS] |= 1 << (at & WORD_MASK)
    ring[at] = v


@part
def forget_finish(ring: Ints, word: Ints, slot: Ints, v: int) -> None:
    """The slot will not finish in the step noted."""
    at, before, after = slot[v, FINISH], slot[v, PEER_BEFORE], slot[v, PEER_AFTER]
    if after >= 0:
        slot[after, PEER_BEFORE] = before
    if before >= 0:
        slot[before, PEER_AFTER] = after
        return
    ring[at] = after
    if after < 0:
        word[at >> WORD_BITS] &= ~(1 << (at & WORD_MASK))


@part
def next_finish(s: Ints, word: Ints) -> int:
    """First later step in which something finishes; only asked while something decodes."""
    n_words = word.shape[0]
    size, after = n_words << WORD_BITS, s[STEP] + 1
    at = after & (size - 1)
    w, shift = at >> WORD_BITS, at & WORD_MASK
    bits = (word[w] >> shift) << shift
    while bits == 0:
        w = (w + 1) & (n_words - 1)
        bits = word[w]
    lone = bits & -bits
    found = (w << WORD_BITS) | BIT_AT[((lone * DEBRUIJN) & 0xFFFFFFFF) >> 27]
    return int(after + ((found - at) & (size - 1)))


@part
def append_waiting(s: Ints, request: Ints, i: int) -> None:
    """The request is the last to be admitted."""
    request[i, NEXT_WAITING] = NONE
    if s[WAIT_TAIL] >= 0:
        request[s[WAIT_TAIL], NEXT_WAITING] = i
    else:
        s[WAIT_HEAD] = i
    s[WAIT_TAIL] = i
    s[OUTSTANDING] += 1


@part
def prepend_waiting(s: Ints, request: Ints, i: int) -> None:
    """A preempted request is the first to be admitted."""
    request[i, NEXT_WAITING] = s[WAIT_HEAD]
    if s[WAIT_HEAD] < 0:
        s[WAIT_TAIL] = i
    s[WAIT_HEAD] = i


@part
def pop_waiting(s: Ints, request: Ints) -> int:
    """The first to be admitted leaves the queue."""
    i = s[WAIT_HEAD]
    s[WAIT_HEAD] = request[i, NEXT_WAITING]
    if s[WAIT_HEAD] < 0:
        s[WAIT_TAIL] = NONE
    return int(i)

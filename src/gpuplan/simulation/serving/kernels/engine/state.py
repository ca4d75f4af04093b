"""State of the engines as packed rows of integers: what their columns mean.

Time is exact: whole picoseconds and 2^-16 parts of one, so that a sum of steps does not depend
on how it is grouped. Without a prefix cache only the number of blocks matters, not which.

Engines come in two kinds. Engines without policies serve first come, first served. Engines with
policies may have a prefix cache, priorities, speculative decoding, and a limit on long prefills.
Text is known by segments: the segment of request i is what no request before it had, in blocks.
The path of a request leads over segments of earlier ones, each from its start, into its own.
"""

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

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
ONE_TOKEN = 1 << GAIN_BITS  # gained by a decode in a step; more where draft tokens are accepted

# Columns of a request.
# GIVEN: leading tokens whose KV cache comes with the request, from another engine.
ARRIVE, INPUT, OUTPUT, MADE, START, FIRST, END, PREEMPTED, NEXT_WAITING, GIVEN = range(10)
N_REQUEST = 10
# Further columns where engines have policies. NUMBER: in order of arrival; rows of a stream are
# used again. HIT: tokens found in the prefix cache. ENDS_LATE: by EOS, before the length asked for.
# STALE, of stages: the last batch that had tokens of it when it was preempted. ADAPTER: the row of
# the first request with the same one, whose IS_TAKEN says that the step being drawn up has it.
# PAD: drafts that the end of its prompt was read with.
PRIORITY, CHILD, HIT, NUMBER, ENDS_LATE, STALE, ADAPTER, IS_TAKEN, PAD = range(9)
N_EXTRA = 9

# Columns of a slot: a request that runs. A decode has OFFSET + the engine's position tokens and
# DONE is NONE; of a prompt, DONE tokens are computed and CHUNK more are in this step. Who has the
# last token but holds its slot until the step drawn up before it was known has begun: DONE is
# LEAVING, or LEAVING_ROW where that step computes one more token for it; LEFT: preempted then.
# FINISH is then the tokens of its text that may be found again.
ID, OFFSET, BEFORE, AFTER, PEER_BEFORE, PEER_AFTER, FINISH, DONE = range(8)
CHUNK = OFFSET
LEAVING, LEAVING_ROW, LEFT = -2, -3, -4
N_SLOT = 8  # rows are as long as lines of the processor's cache
# Further columns where engines have policies. ORDER: of admission. STAMP: the last step that
# scheduled it. ENTERED: blocks whose text is in the prefix cache. ELEMENT, COVERED: the segment
# that comes next, its place on the path, and the blocks before it. LAST_EXTENT, N_CHAINED: where
# the chain of what it holds there ends, and its blocks; CHAINS: those before it.
ORDER, STAMP, ENTERED, ELEMENT, COVERED, LAST_EXTENT, N_CHAINED, CHAINS = range(N_SLOT, N_SLOT + 8)
N_FEATURED_SLOT = N_SLOT + 8

# Scalars of an engine. STEP: position of the decodes, in tokens; GAIN: of the last step.
# STOP: no jump goes past the first boundary of steps at or after it.
# KNOWN: whoever has come by then may be admitted to the step that begins now.
NOW, FRAC, STEP, FREE, N_DECODES, CONTEXT, N_RUNNING, HEAD, TAIL, WAIT_HEAD = range(10)
WAIT_TAIL, N_PARTIALS, READY, BLOCKED, IN_FLIGHT, FLIGHT_END, FLIGHT_FRAC = range(10, 17)
MARK, PREFILL_TOKENS, PREFILL_PAIRS, N_ENDED, FREE_SLOT, OUTSTANDING = range(17, 23)
N_STEPS, N_PREEMPTIONS, BIN, BIN_END, BIN_WIDTH, COMPUTED, USED_BEFORE = range(23, 30)
STOP, KNOWN, TICK, GAIN, PARKED = range(30, 35)
# A jump that was planned and not taken: its plan, and what it was made for.
PLAN_STEPS, PLAN_LASTS, PLAN_BLOCKS, PLAN_REGIME, PLAN_EARLIER = range(35, 40)
PLAN_AT, PLAN_CONTEXT, PLAN_HEAD, PLAN_STOP = range(40, 44)
# Of engines with policies. BARE: free blocks that are reused before the queue, which begins with
# OLDEST. TOP, SPARE: the first row that was never used, and those that are used no longer.
ORDERED, BARE, OLDEST, NEWEST, EXTENT_TOP, EXTENT_SPARE, ENTRY_TOP, ENTRY_SPARE = range(44, 52)
ASKED_TOKENS, HIT_TOKENS, N_EVICTED, IS_WALKING = range(52, 56)
# Who is leaving, in order of admission. CLOSED: the tick of a step to which nobody is admitted.
# FLIGHT_TOKENS: of the step in flight. IS_LONE: the engine has one request in all.
LEAVE_HEAD, LEAVE_TAIL, N_LEAVING, CLOSED, FLIGHT_TOKENS, IS_LONE = range(56, 62)
# DEBT: blocks that decodes with drafts hold less of than the count of all says; NEXT_DEBT: after
# the step to come.
CHAIN_TOP, CHAIN_SPARE, DEBT, NEXT_DEBT = range(62, 66)
# Of stages: preempted requests with a token on the way; no further batch can begin. N_ADAPTERS: of
# the step being drawn up, as is what runs: HAD_PROMPT, a prompt that is half computed, and
# HAD_ROWS, anything. N_STALLED: steps that preempted since a prompt was read to its end, while
# nothing was decoded; of stages, batches that preempted or were empty since a token came. Past
# MOST_STALLED requests preempt one another for ever.
N_LATE, IS_FULL, N_ADAPTERS, HAD_PROMPT, HAD_ROWS, N_STALLED = range(66, 72)
MOST_STALLED = 20_000
PHASES = 72  # and as many more as a block has tokens

# Limits of an engine.
MAX_TOKENS, MAX_SEQUENCES, N_BLOCKS, BLOCK_BITS, IS_RESERVING, WINDOW, LONG_PREFILL = range(7)
IS_JUMPING, LAST_INSTANT, CHECKED, GAIN_FRAC, IS_CACHING, IS_PRIORITY, IS_AHEAD = range(7, 14)
# ENDS_BY_EOS: an end is known when the last token is there, not from the requested length.
# LONE_IS_WHOLE: a long prompt that is alone is not cut. WATERMARK: blocks that an admission leaves
# free. BARE_FIRST: blocks that hold no text are reused before any that do.
# IS_CHUNKING: prompts may be cut. FILLS_QUEUE: batches of stages are drawn up until it is full.
# MAX_ADAPTERS: of one step; 0 where there is no limit. PADS: one token of a prompt is read as a
# decode with its drafts. WAITS_FOR_LATE: who is preempted, until what is on the way has come.
# KEEPS_TURNS: a victim that was passed over costs nobody a turn.
ENDS_BY_EOS, LONE_IS_WHOLE, WATERMARK, BARE_FIRST, IS_CHUNKING, FILLS_QUEUE = range(14, 20)
MAX_ADAPTERS, PADS, WAITS_FOR_LATE, KEEPS_TURNS = range(20, 24)
N_LIMITS = 24
# Of the ring of finishes, so many steps share a word of bits.
WORD_BITS, WORD_MASK = 5, 31
# What a bin of time sums up.
BUSY_S, BLOCKS_S, COMPUTE_S, READ_S = range(4)
N_SUMS = 4

# Columns of a path: a segment, and how many of its first blocks.
SEGMENT, N_SHARED = range(2)
# Columns of an extent: places LOW to HIGH of the segment in row ENTRY, NONE where they hold no
# text. USERS: slots that hold it. HELD_BEFORE: what its users hold before it; where it has none,
# OLDER and NEWER in the queue of free blocks. LISTED: extents of the segment by age.
ENTRY, LOW, HIGH, USERS, HELD_BEFORE, NEWER, LISTED_BEFORE, LISTED_AFTER = range(8)
OLDER = HELD_BEFORE
N_EXTENT = 8
# Columns of a segment of which something is cached or being written, by the slot WRITER, which
# decodes it. HAS_COPIES: two extents may share a place.
KEY, NEXT_ENTRY, EARLIEST, LATEST, HAS_COPIES, WRITER = range(6)
N_ENTRY = 8  # a line of the processor's cache
# Columns of a chain of extents: its last, its blocks, and the chain before it.
CHAIN_END, CHAIN_SIZE, CHAIN_BEFORE = range(3)
N_CHAIN = 3
# Rows of what drawn acceptances gain: tokens after so many steps, and their sum before a step.
POSITIONS, SUMS = range(2)
N_DRAWN = 1 << 16  # steps, after which the draws repeat
N_HOME = 320  # integers that the tuple of an engine of any kind fits into


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
    home: Ints  # (engines, N_HOME): where the tuple of an engine is written down


class Engine(Engines):
    """One engine's rows, its pool's tables, and what all share; `pool` is that of all."""

    __slots__ = ()


class FeaturedEngines(NamedTuple):
    """Engines with policies; the first fields as in `Engines`."""

    scalar: Ints
    slot: Ints  # (engines, max sequences, N_FEATURED_SLOT)
    ring: Ints
    word: Ints
    bins: Floats
    flight_s: Floats
    request: Ints
    pool: Ints
    limit: Ints
    lines: Ints
    slopes: Ints
    tokens_s: Floats
    rows_s: Floats
    mix: Floats
    home: Ints
    extra: Ints  # (requests, N_EXTRA)
    path_first: Ints  # (requests + 1): where the path of a request begins
    path: Ints  # (elements, 2)
    bucket: Ints  # (engines, power of two): first entry of the segments that meet here
    entry: Ints  # (engines, segments, N_ENTRY)
    extent: Ints  # (engines, blocks, N_EXTENT)
    chain: Ints  # (engines, blocks of all slots, N_CHAIN)
    found: Ints  # (blocks of a request, 3): extents of the request looked up, from place to place
    gained: Ints  # (pools, 2, N_DRAWN + 1) where acceptance is drawn, else (pools, 2, 1)


class FeaturedEngine(FeaturedEngines):
    """One engine with policies: its rows, its pool's tables, and what all share."""

    __slots__ = ()


# Parts of kernels serve both kinds of engine; types know no tuple with the fields of another.
AnyEngine = Any
AnyEngines = Any

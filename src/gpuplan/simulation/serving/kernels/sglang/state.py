"""State of SGLang's engines: columns beyond those of every engine (`engine/state.py`).

`st.STEP` counts decode steps that were begun; a sequence that decodes has `OFFSET + STEP - 1`
tokens in the cache. `st.FREE` counts pages that are free or hold text that nobody uses.
"""

from typing import NamedTuple

from gpuplan.simulation.serving.kernels.engine.state import N_SLOT, Floats, Ints

# Further columns of a slot. NODE: end of the text that it holds of the tree, which has SAFE pages.
# ORDER: among what runs. IS_RUNNING: it decodes. IS_FRESH: its first token is on the way.
NODE, SAFE, ORDER, IS_RUNNING, IS_FRESH = range(N_SLOT, N_SLOT + 5)
N_OWN_SLOT = N_SLOT + 8

# Columns of a request. ASKED: max_tokens. BASE: pages of its text that others had before.
# HIT: tokens of the prompt found in the tree. SEEN: the last pass that met its text.
ASKED, HIT, BASE, SEEN = range(4)
N_ASKED = 4

# Rules of a pool. CHUNK: tokens of a prefill batch, 0: no limit. KNOWS_ENDS: 0.5.22 and later.
CHUNK, MAX_PREFILL, IS_MIXING, IS_LPM, IGNORES_EOS, KNOWS_ENDS, HAS_TREE = range(7)
N_RULES = 7

# Scalars of an engine. LAST: the batch before, and how many decodes it CARRIED along. STAMP: of
# a pass over who waits, another in every engine.
FULL, CHUNKED, LAST, CARRIED, BACK, N_PENDING = range(6)
READY_TAIL, N_READY, COMMITTED, N_LONG, N_FRESH, N_GONE, GONE_LEFT, DECAYS = range(6, 14)
LAST_ORDER, PASSES, N_BATCH, CURRENT, REM_IN, REM_CHUNK, N_STATES = range(14, 21)
CLOCK, NODE_TOP, NODE_SPARE, N_TREE, N_LOCKED, N_HEAP, IS_SHORT, STAMP, STRIDE = range(21, 30)
N_OWN = 30
NO_BATCH, EXTEND, DECODE = range(3)  # values of LAST

# Reals of an engine: the new-token ratio, what is set aside, and where the ratio begins and ends.
RATIO, TOTAL, INIT, LEAST, DECAY = range(5)
N_REALS = 5

# Columns of a batch that was begun: when it ends, the decode step that it is (NONE: it has no
# decodes), its tokens, rows of its prompts.
END, END_FRAC, POSITION, N_TOKENS, N_ROWS = range(5)
N_FLIGHT = 5
# Columns of a row of a prefill batch. TOKENS: 0 where the request is cut.
ROW_SLOT, ROW_ID, TOKENS, ENDS = range(4)
N_ROW = 4

# Columns of a node of the tree: pages START to STOP of the text of a request.
TEXT, BEGIN, STOP, PARENT, LOCKS, N_CHILDREN, AT, CHAIN, IS_LISTED = range(9)
N_NODE = 9
ROOT = 0
MOST_SORTED = 128  # who waits beyond is not put in order
CLIP = 4096  # tokens of an answer that are reserved at most
RETRACT_STEPS = 20
DECAY_STEPS = 600
REFRESH_PASSES = 32
ALIKE_TOKENS = 32


class SglangEngines(NamedTuple):
    """SGLang's engines; the first fields as in `Engines`."""

    scalar: Ints
    slot: Ints  # (engines, max sequences, N_OWN_SLOT)
    ring: Ints
    word: Ints
    bins: Floats
    flight_s: Floats  # (engines, 4): peaks of the two batches that may be on the way
    request: Ints
    pool: Ints
    limit: Ints
    lines: Ints
    slopes: Ints
    tokens_s: Floats
    rows_s: Floats
    mix: Floats
    home: Ints
    rule: Ints  # (pools, N_RULES)
    own: Ints  # (engines, N_OWN)
    real: Floats  # (engines, N_REALS)
    flight: Ints  # (engines, 2, N_FLIGHT)
    batch: Ints  # (engines, 2, max sequences + 1, N_ROW)
    scratch: Ints  # (engines, 2, rows, 2): key and value, to be sorted
    requested: Ints  # (requests, N_ASKED)
    path_first: Ints  # (requests + 1)
    path: Ints  # (elements, 2)
    table: Ints  # (engines, power of two): first node of a chain
    node: Ints  # (engines, nodes, N_NODE)
    heap: Ints  # (engines, nodes, 2): leaves by last use


class SglangEngine(SglangEngines):
    """One engine of SGLang's: its rows, its pool's tables, and what all share."""

    __slots__ = ()

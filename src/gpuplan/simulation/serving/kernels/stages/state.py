"""State of engines with pipeline stages: columns beyond those of engines with policies.

Batches are numbered as they begin: `st.TICK` is the next one, of which `st.IN_FLIGHT` before it are
on the way. Every slot is a prompt to the end: `st.DONE` tokens of it have been scheduled.
"""

from typing import NamedTuple

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Floats, Ints

# Columns of a slot, which has no use for those of the same number. READ_IN: the batch that read its
# prompt to the end. AWAITED: the one that brings its next token. LAST_BEFORE: the batch before the
# last (`st.STAMP`) that has tokens of it.
READ_IN, LAST_BEFORE, AWAITED = st.FINISH, st.PEER_BEFORE, st.PEER_AFTER

# Columns of a batch on the way. While batches are taken at once, also of its rows: how many, the
# tokens they see, turns until the first of them has its last token, turns taken, when the first one
# ended, and how many rows lack a block at each turn, by turns modulo the tokens of a block.
END, N_TOKENS, N_ROWS, SEEN, N_LEFT, N_TURNS, FIRST_END, PHASES = range(8)
# Columns of a token on the way whose request has been preempted since.
REQUEST, BATCH = range(2)


class StagedEngines(NamedTuple):
    """Engines with stages; the first fields as in `FeaturedEngines`."""

    scalar: Ints
    slot: Ints
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
    extra: Ints
    path_first: Ints
    path: Ints
    bucket: Ints
    entry: Ints
    extent: Ints
    chain: Ints
    found: Ints
    gained: Ints
    flight: Ints  # (engines, batches, PHASES and tokens of a block)
    peak_s: Floats  # (engines, batches, 2): arithmetic and memory at their peaks
    stage: Ints  # (engines, stages): when each is free
    late: Ints  # (engines, batches x sequences, 2): tokens on the way for who was preempted


class StagedEngine(StagedEngines):
    """One engine with stages: its rows, its pool's tables, and what all share."""

    __slots__ = ()

"""State of engines with more policies: what `Engines` has, and a cache of prefixes.

Text is known by segments: the segment of request i is what no request before it had, in blocks.
The path of a request leads over segments of earlier ones, each from its start, into its own.
"""

from typing import Any, NamedTuple

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Floats, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import part

# Further columns of a slot. ORDER: of admission. DONE: tokens of a prompt that is being read, -1
# for a decode. CHUNK: of them, in this step. STAMP: the last step that scheduled it. NODES: what it
# holds of the cache, last segment first. AT_NODE, ELEMENT, COVERED: the segment it now writes, its
# place on the path, and the blocks before it.
ORDER, DONE, CHUNK, STAMP, NODES, AT_NODE, ELEMENT, COVERED = range(st.N_SLOT, st.N_SLOT + 8)
N_FEATURED_SLOT = st.N_SLOT + 8
# Further columns of a request.
# NUMBER: in order of arrival; rows of a stream are used again.
PRIORITY, CHILD, HIT, BASE, NUMBER = range(5)
N_EXTRA = 5
# Columns of a path: a segment, and how many of its first blocks.
SEGMENT, N_SHARED = range(2)
# Columns of a segment in an engine's cache. Blocks up to CACHED are there; up to HELD somebody
# uses them; the rest is free, in runs, the outermost run being the oldest. HOLDER: the node that
# reaches farthest. WRITER: the slot that adds blocks as it decodes.
KEY, CACHED, HELD, HOLDER, WRITER, RUN_INNERMOST, RUN_OUTERMOST = range(7)
N_ENTRY = 7
# Columns of a run of free blocks of one segment, in the queue of eviction and in the segment.
RUN_ENTRY, LOW, HIGH, OLDER, NEWER, INNER, OUTER = range(7)
N_RUN_COLUMNS = 7
# Columns of what a slot holds of a segment. IS_APART: it has blocks of its own of the same text.
NODE_ENTRY, EXTENT, IS_APART, EARLIER, FARTHER, NEARER = range(6)
N_NODE = 6
# Rows of what drawn drafts gain: tokens after so many steps, and the sum of these before a step.
POSITIONS, SUMS = range(2)
N_DRAWN = 1 << 16  # steps, after which the draws repeat


class FeaturedEngines(NamedTuple):
    """Everything a run reads and writes; the first fields as in `Engines`."""

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
    extra: Ints  # (requests, N_EXTRA)
    path_first: Ints  # (requests + 1): where the path of a request begins
    path: Ints  # (elements, 2)
    table: Ints  # (engines, power of two): entry of a segment, by its number
    entry: Ints  # (engines, entries, N_ENTRY)
    run: Ints  # (engines, runs, N_RUN_COLUMNS)
    node: Ints  # (engines, nodes, N_NODE)
    gained: Ints  # (pools, 2, N_DRAWN + 1): of drawn drafts; (pools, 2, 1) where none are drawn


class FeaturedEngine(NamedTuple):
    """One engine's rows, its pool's tables, and what all share."""

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
    extra: Ints
    path_first: Ints
    path: Ints
    table: Ints
    entry: Ints
    run: Ints
    node: Ints
    gained: Ints


# Pieces of kernels serve every kind of engine; types know no tuple with the fields of another.
AnyEngine = Any
AnyEngines = Any


@part
def one_featured(all_: FeaturedEngines, r: int) -> FeaturedEngine:
    """Views of one engine's rows: made once, handed down."""
    p = all_.pool[r]
    return FeaturedEngine(
        all_.scalar[r], all_.slot[r], all_.ring[r], all_.word[r], all_.bins[r], all_.flight_s[r],
        all_.request, all_.limit[p], all_.lines[p], all_.slopes[p], all_.tokens_s[p],
        all_.rows_s[p], all_.mix[p], all_.extra, all_.path_first, all_.path, all_.table[r],
        all_.entry[r], all_.run[r], all_.node[r], all_.gained[p],
    )  # fmt: skip

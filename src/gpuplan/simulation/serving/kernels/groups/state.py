"""State of engines whose layers are in groups: fields of engines with policies, used otherwise.

Groups have blocks of one size from one pool, each its own for the same tokens. `extent` has a row
per block, `bucket` the blocks whose text is cached, `entry` what a slot has of each group, `chain`
the blocks themselves, `found` those that were found for the request looked up.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import FeaturedEngine, FeaturedEngines

# Columns of a block. TEXT: what it holds, NONE where nothing may be found. MET: the next block
# that meets it in a bucket. FREE_BEFORE, FREE_AFTER: in the queue of free blocks.
TEXT, USERS, MET, FREE_BEFORE, FREE_AFTER = range(5)
N_BLOCK = 8  # a line of the processor's cache
# Of a slot and a group: blocks that it was given, and how many of the first it no longer has.
GIVEN, GONE = range(2)
# Columns of a slot: the step that it last had tokens in, and how many.
LAST_TICK, LAST_TOKENS = st.ELEMENT, st.COVERED
# Column of a request: the number of the first block that no request before it had.
FIRST_TEXT = st.STALE
# Limits beyond those of other engines, then three for every group: its kind, the tokens of its
# window or chunk, and the most blocks that a prompt is said to need of it.
FREES_LATE = st.N_LIMITS  # blocks leave a window when the step that passed them has ended
GROUPS = st.N_LIMITS + 1
KIND, SIZE, MOST = range(3)
N_GROUP = 3
FULL, WINDOW, CHUNK, STATE = range(4)


class GroupedEngines(FeaturedEngines):
    """Engines whose layers are in groups."""

    __slots__ = ()


class GroupedEngine(FeaturedEngine):
    """One of them."""

    __slots__ = ()

"""State of a simulated cluster: jobs, nodes, pools, teams, queues and what is counted.

A pool holds nodes of one GPU type and size. Quotas and fractions are counted in thousandths of a
GPU. Every array is made by the caller; rows are things, columns are named here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
MILLI = 1000
UNLIMITED = 1 << 60
NEVER = 1e300

# What a job is, then what becomes of it.
GPUS, LEAST, MOST, CURVE, TEAM, PRIORITY, POOLS, LEVEL, SHARE, PROFILE = range(10)
CPU, RAM, IS_SERVICE, IS_FIXED = range(10, 14)  # per GPU (whole job where it has a share)
STATUS, HELD, POOL, ENTRY, MASK, HEAP_AT, N_STARTS, N_PREEMPTED, N_FAILED = range(14, 23)
FIRST_NODE, N_RESIZED = range(23, 25)
N_JOB = 25
ARRIVE, WORK, LIMIT, DEADLINE, CHECKPOINT, RESTART = range(6)
LEFT, BEGAN, PAUSE, SPEED, END, LIMIT_END, FIRST, LOST, HELD_TIME, KEY = range(6, 16)
N_WORK = 16
TO_COME, QUEUED, RUNNING, IN_CLOUD, DONE, EXPIRED = range(6)

# A node.
NODE_POOL, FREE, CPU_FREE, RAM_FREE, RACK, ZONE, DOWN, TAKEN = range(8)
N_NODE = 8
# A pool, and what of it would be free at a reservation.
SIZE, FLAVOR, POOL_FREE, PLAN_FREE, PLAN_FULL, PLAN_ENOUGH = range(6)
N_POOL = 6
# A quota of a team and a GPU type, in thousandths.
NOMINAL, BORROW, LEND, USED = range(4)
# A team.
COHORT, IS_BLOCKED, CURSOR, IS_TRIED, BORROWS, TEAM_CPU, TEAM_RAM, TEAM_GPUS = range(8)
N_TEAM = 8
WEIGHT, USAGE, USAGE_AT = range(3)
# A shared GPU.
SLOT_NODE, SLOT_USED, SLOT_KIND, N_TENANTS, PLAN_TENANTS = range(5)
N_SLOT = 5
NOBODY, BY_SHARE, BY_MIG = range(3)
# Entries of allocations: node, GPUs (or minus the shared GPU less one), next entry.
ON, N_TAKEN, NEXT = range(3)
# A sorted list within the shared store.
LOW, CAP, HEAD, COUNT = range(4)

# Rules.
ORDER, BLOCKING, DEPTH, PLACEMENT, PREEMPTS, SAVES, N_QUEUES, RECLAIM, WITHIN = range(9)
BURST_GPUS, CLOUD_GPUS, N_TEAMS, TOTAL_CPU, TOTAL_RAM, TOTAL_GPUS, WORDS = range(9, 16)
N_RULE = 16
FIFO, BY_PRIORITY, SHORTEST, EDF, FAIR, DRF, KUEUE = range(7)
STRICT, SKIP, EASY, CONSERVATIVE = range(4)
PACK, SPREAD, SCATTER = range(3)
NO_RECLAIM, RECLAIM_LOWER, RECLAIM_ANY = range(3)
HALF_LIFE, CLOUD_DELAY, CLOUD_SPEED, BIN, START = range(5)
N_REAL = 5  # the speed of every pool follows

# Counters.
NEXT_JOB, NEXT_EVENT, N_HEAP, FREE_ENTRY, N_SLOTS, N_PIECES, N_SEGMENTS = range(7)
IS_DIRTY, BLOCKED_HEAD, WHY, CLOUD_USED, N_QUEUED, GPUS_QUEUED = range(7, 13)
GPUS_SERVICE, GPUS_DOWN, GPUS_FREE, N_VICTIMS, N_BREAKS, N_BATCH_QUEUED = range(13, 19)
HAS_PROFILE, PASS_AT, PASS_WHY, IS_PASSED_OVER, CANDIDATE = range(
    19, 24
)  # of the last conservative pass
N_COUNTER = 24
NOW, SHADOW = range(2)
# Why the first blocked job waits; the greater holds where its pools differ.
NOBODY_WAITS, BY_QUOTA, TOO_FEW, FRAGMENTED = range(4)

# Layers of a bin of time: GPU-seconds, and job-seconds of the queue.
L_BATCH, L_SERVICE, L_DOWN, L_IDLE, L_QUOTA, L_SHORT, L_FRAGMENTED = range(7)
L_QUEUED, L_QUEUED_GPUS, L_CLOUD = range(7, 10)
N_LAYER = 10
# Events from outside.
FAILS, RETURNS, DRAINS = range(3)
# Rows of the scratch space by node.
PIECE_NODE, PIECE_GPUS, PLAN, EXTRA = range(4)
N_SCRATCH = 4
# A run of a job on one of its nodes: from, to, job, node, GPUs there, how it ended.
N_SEGMENT = 6
FINISHED, PREEMPTED, FAILED, RESIZED = range(4)


class Sim(NamedTuple):
    """All arrays of a run."""

    rule: Ints
    real: Floats
    counter: Ints
    clock: Floats
    job: Ints  # (jobs, N_JOB)
    work: Floats  # (jobs, N_WORK)
    node: Ints  # (nodes, N_NODE)
    pool: Ints  # (pools, N_POOL)
    bits: Words  # (pools, GPUs free, words): nodes by free GPUs
    at: Ints  # (pools, GPUs free): how many nodes
    team: Ints  # (teams, N_TEAM)
    usage: Floats  # (teams, 3)
    quota: Ints  # (teams, GPU types, 4)
    mig: Ints  # (pools, profiles, masks): mask with the slice added, or -1
    slot: Ints  # (shared GPUs, N_SLOT)
    entry: Ints  # (entries, 3)
    heap: Ints
    list_key: Floats
    list_item: Ints
    list_of: Ints  # (lists, 4)
    event_at: Floats
    event: Ints  # (events, 2): kind, node
    curve: Floats  # (curves, GPUs): speed
    scratch: Ints  # (N_SCRATCH, nodes)
    victim: Ints  # (2, jobs): those chosen, and whether a job is
    breaks: Floats  # (1 + pools, breakpoints): time, GPUs free from then on
    after: Ints  # the next breakpoint in time, or -1
    bins: Floats  # (bins, N_LAYER)
    segment: Floats  # (segments, N_SEGMENT)

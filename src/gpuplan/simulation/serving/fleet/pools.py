"""Pools of a fleet as the rows that kernels read: sizes, clocks, scalers, who serves what."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.domain.simulation.fleet import ElasticFleet, Pool, PoolShare
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.sglang import is_sglang, most_tokens

LONGEST = 1 << 61  # a duration beyond any run


def ticks(seconds: float | None) -> int:
    """Whole picoseconds; NEVER for none."""
    return el.NEVER if seconds is None else min(round(seconds * st.TICKS_PER_S), LONGEST)


def pool_rows(fleet: ElasticFleet) -> Ints:
    """One row a pool: its replicas, limits and clocks."""
    values, first = np.zeros((len(fleet.pools), el.N_POOL), dtype=np.int64), 0
    for row, pool in zip(values, fleet.pools, strict=True):
        size, limits = pool.size, pool.limits
        row[el.FIRST_REPLICA], row[el.N_SLOTS] = first, size.n_slots
        first += size.n_slots
        row[el.COUNTS + el.READY] = row[el.DESIRED] = size.n_first
        row[el.COUNTS + el.OFF] = size.n_slots - size.n_first
        row[[el.HELD_HEAD, el.HELD_TAIL]] = st.NONE
        row[el.MAX_OUT] = _or(pool.admission.max_outstanding, LONGEST)
        row[el.MAX_HELD] = _or(pool.admission.max_held, LONGEST)
        row[el.LEAST] = _or(size.n_least, size.n_first)
        row[el.MOST] = _or(size.n_most, size.n_first)
        row[el.COLD], row[el.WARM] = ticks(pool.start.total_s), ticks(pool.start.warm_s)
        row[el.GRACE] = ticks(pool.drain_s)
        row[el.TRANSFER_LATENCY] = ticks(fleet.kv_transfer.latency_s if fleet.kv_transfer else 0.0)
        row[el.CAPACITY] = room_of(limits)
        _clocks(row, pool)
    return values


def room_of(limits: EngineLimits) -> int:
    """Tokens of prompt and output, less the last, that an engine can hold for one request."""
    n_draft_tokens = 0 if limits.drafts is None else limits.drafts.n_tokens
    room = limits.n_blocks * limits.block_tokens - n_draft_tokens
    if is_sglang(limits):
        room = most_tokens(limits) - 1
    return min(room, _or(limits.max_context_tokens, room + 1) - 1)


def _clocks(row: Ints, pool: Pool) -> None:
    """What happens to the pool from time to time."""
    row[[el.TICK_AT, el.ROLL_AT, el.ROLL_EVERY, el.MTBF, el.MTTR, el.MTBN]] = el.NEVER
    row[[el.LAST_UP, el.LAST_DOWN]] = -LONGEST
    row[el.N_WINDOW] = 1
    row[el.IS_FAILED_PAID] = 1
    if pool.scaler is not None:
        row[el.TICK_AT] = row[el.INTERVAL] = ticks(pool.scaler.interval_s)
        row[el.IS_BY_QUEUE] = pool.scaler.metric == "queue"
        row[el.UP_WAIT] = ticks(pool.scaler.up_cooldown_s)
        row[el.DOWN_WAIT] = ticks(pool.scaler.down_cooldown_s)
        row[el.N_WINDOW] = _n_ticks(pool)
    if pool.failures is not None:
        row[el.MTBF], row[el.MTTR] = ticks(pool.failures.mtbf_s), ticks(pool.failures.mttr_s)
        row[el.IS_FIXED_REPAIR] = pool.failures.is_fixed_repair
        row[el.IS_FAILED_PAID] = pool.failures.is_paid
    if pool.spot is not None:
        row[el.MTBN], row[el.NOTICE] = ticks(pool.spot.mean_s), ticks(pool.spot.notice_s)
        row[el.AWAY] = ticks(pool.spot.away_s)
        row[el.IS_FAILED_PAID] = 0
    if pool.restarts is not None:
        row[el.ROLL_AT] = ticks(pool.restarts.first_s)
        row[el.ROLL_EVERY] = ticks(pool.restarts.every_s)
        row[el.MAX_UNAVAILABLE] = pool.restarts.max_unavailable


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _n_ticks(pool: Pool) -> int:
    scaler = pool.scaler
    return 1 if scaler is None else 1 + int(scaler.down_window_s // scaler.interval_s)


def most_ticks(fleet: ElasticFleet) -> int:
    """Ticks that the longest memory of an autoscaler holds."""
    return max(_n_ticks(pool) for pool in fleet.pools)


def pool_reals(fleet: ElasticFleet) -> Floats:
    """One row a pool: what it has as real numbers."""
    values = np.zeros((len(fleet.pools), el.N_REAL))
    values[:, el.GUARD_MORE] = fleet.router.guard_requests
    values[:, el.GUARD_RATIO] = fleet.router.guard_ratio
    if fleet.router.rule == "session":
        values[:, el.GUARD_MORE] = np.inf
    for row, pool in zip(values, fleet.pools, strict=True):
        row[el.SPILL_AT] = min((s.spill_requests for s in _shares(fleet, pool)), default=8.0)
        if pool.scaler is not None:
            row[el.TARGET] = pool.scaler.target_requests
            row[el.TOLERANCE] = pool.scaler.tolerance_frac
        if fleet.kv_transfer is not None:
            hand = fleet.kv_transfer
            each_s = hand.cache_bytes_per_token / hand.link_bytes_per_s
            row[el.TICKS_PER_TOKEN] = each_s * st.TICKS_PER_S
    return values


def _shares(fleet: ElasticFleet, pool: Pool) -> list[PoolShare]:
    named = [share for s in fleet.services for share in (*s.pools, *s.decode_pools)]
    return [share for share in named if share.pool == pool.name]


def pool_weights(fleet: ElasticFleet) -> Floats:
    """Weight of every pool for every service, of prefill and of disaggregated decode."""
    names = [pool.name for pool in fleet.pools]
    is_split = any(service.decode_pools for service in fleet.services)
    values = np.zeros((1 + is_split, max(1, len(fleet.services)), len(names)))
    if not fleet.services:
        values[:] = 1.0
    for at, service in enumerate(fleet.services):
        for share in service.pools:
            values[0, at, names.index(share.pool)] = share.weight_ratio
        for share in service.decode_pools:
            values[1, at, names.index(share.pool)] = share.weight_ratio
    return values

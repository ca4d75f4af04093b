"""What a run of a fleet left in its arrays, as values."""

from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.simulation.fleet import (
    FINISHED,
    LOST,
    REFUSED,
    TIMED_OUT,
    UNSERVABLE,
    UNSERVED,
    ElasticFleet,
    FleetCounts,
    FleetOutcome,
    FleetTimeline,
    PoolTotals,
)
from gpuplan.domain.simulation.outcome import Outcome, RequestTimes, UseOverTime
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.simulation.serving.arrays import N_BINS, Mask, totals_of
from gpuplan.simulation.serving.features import hits_of
from gpuplan.simulation.serving.fleet.arrays import Jobs, is_closed, pieces
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.kernels.fleet import state as el

ENDS_OF = {el.REFUSED: REFUSED, el.TIMED_OUT: TIMED_OUT, el.LOST: LOST}
WHY = {
    REFUSED: "refused: no room, not even to wait",
    TIMED_OUT: "timed out",
    LOST: "lost: their replicas died too often",
    UNSERVED: "unserved: no replica ever had room",
}


Rows = Ints | slice
JOB_COLUMNS = (el.ORIGIN, el.ON, el.STATE, el.N_TRIES, el.ENDED_AT)
REQUEST_COLUMNS = (st.START, st.FIRST, st.END, st.PREEMPTED)


class Observations(NamedTuple):
    """Of each request, what the run left: columns of jobs, then of the engines' rows."""

    origin: Ints
    on: Ints
    state: Ints
    n_tries: Ints
    ended_at: Ints
    start: Ints
    first: Ints
    end: Ints
    preempted: Ints


class Run(NamedTuple):
    """All of a run that is over."""

    jobs: Jobs
    fleet: ElasticFleet
    engines: AnyEngines
    state: el.Elastic
    unservable: tuple[tuple[str, int], ...]


def outcome_of(run: Run) -> FleetOutcome:
    """Every request's end and times, and what became of the replicas."""
    observed = _observed(run)
    end = _ends(run, observed)
    last = _last_instant(run, observed, end)
    order = _order(run)
    pools = _pool_totals(run, observed.on[end == FINISHED], last)
    outcome = Outcome(
        requests=_requests(run, order),
        times=_times(run, observed, end, order=order),
        use=_joined(pools),
        totals=totals_of(run.engines, last),
        n_engines=len(run.state.replica),
        refused=(*run.unservable, *_refused(end)),
        paid_engine_s=sum(pool.paid_s for pool in pools),
    )
    return FleetOutcome(
        outcome=outcome,
        end=ints(end[order]),
        n_tries=ints(1 + observed.n_tries[order]),
        timeline=_timeline(run.state),
        counts=_counts(run.state.scalar),
        pools=pools,
    )


def _observed(run: Run) -> Observations:
    """The columns that are asked for, of rows that are wide."""
    job, request, n = run.state.job, run.engines.request, len(run.jobs.requests)
    found = np.empty((len(JOB_COLUMNS) + len(REQUEST_COLUMNS), n), dtype=np.int64)
    for rows in pieces(n):
        for at, column in enumerate(JOB_COLUMNS):
            found[at, rows] = job[rows, column]
        for at, column in enumerate(REQUEST_COLUMNS, len(JOB_COLUMNS)):
            found[at, rows] = request[rows, column]
    return Observations(*found)


def _ends(run: Run, observed: Observations) -> Ints:
    """How each request ended: finished, or why not."""
    accepted = run.jobs.accepted
    way_of = np.full(el.LOST + 1, UNSERVED, dtype=np.int64)
    for state, way in ENDS_OF.items():
        way_of[state] = way
    ways = way_of[observed.state]
    is_served = (observed.state == el.SERVED) | (observed.state == el.DONE)
    ways[is_served & (observed.end >= 0)] = FINISHED
    if len(accepted) == len(ways):
        return ways
    end = np.full(len(ways), UNSERVABLE, dtype=np.int64)
    end[accepted] = ways[accepted]
    return end


def _last_instant(run: Run, observed: Observations, end: Ints) -> int:
    """The last token, the last client that gave up, or the end of a run that never ends."""
    last = int(observed.end[end == FINISHED].max(initial=0))
    last = max(last, int(observed.ended_at.max(initial=0)))
    return max(last, int(run.state.scalar[el.NOW])) if np.any(end == UNSERVED) else last


def _order(run: Run) -> Rows:
    """Rows by arrival; those that never came stand last."""
    if not is_closed(run.jobs):
        return slice(None)
    origin = run.state.job[:, el.ORIGIN]
    return np.argsort(np.where(origin < 0, el.NEVER, origin), kind="stable").astype(np.int64)


def _requests(run: Run, order: Rows) -> Requests:
    requested = run.jobs.requests
    if isinstance(order, slice):
        return requested
    origin = run.state.job[order, el.ORIGIN]
    arrive_s = np.maximum.accumulate(np.where(origin < 0, 0, origin) / st.TICKS_PER_S)
    grouping = Grouping(
        session=requested.session[order],
        prefix_group=requested.prefix_group[order],
        prefix_tokens=requested.prefix_tokens[order],
        priority=requested.priority[order],
        max_tokens=requested.max_tokens[order],
    )
    return requests_of(
        arrive_s, requested.input_tokens[order], requested.output_tokens[order], grouping=grouping
    )


def _times(run: Run, observed: Observations, end: Ints, *, order: Rows) -> RequestTimes:
    finished = end[order] == FINISHED
    origin, first, last = observed.origin[order], observed.first[order], observed.end[order]
    on = np.where(finished, observed.on[order], 0)
    start_s = np.array([pool.limits.start_s for pool in run.fleet.pools])
    outside_s = np.where(finished, start_s[run.state.replica[:, el.POOL]][on], 0.0)

    def since(later: Ints, sooner: Ints) -> Floats:
        return np.where(finished, later - sooner, 0) / st.TICKS_PER_S

    rest = np.maximum(run.jobs.requests.output_tokens[order] - 1, 1)
    return RequestTimes(
        wait_s=floats(since(observed.start[order], origin)),
        ttft_s=floats(since(first, origin) + outside_s),
        tpot_s=floats(since(last, first) / rest),
        e2e_s=floats(since(last, origin) + outside_s),
        n_preemptions=ints(observed.preempted[order]),
        is_finished=ints(finished),
        n_cached_tokens=_hits(run, finished, order),
    )


def _hits(run: Run, finished: Mask, order: Rows) -> Ints | None:
    """Tokens found in the prefix cache of the replica that served; None where there is none."""
    hits = hits_of(run.engines)
    return None if hits is None else ints(np.where(finished, hits[order], 0))


def _refused(end: Ints) -> list[tuple[str, int]]:
    counts = [(why, int((end == way).sum())) for way, why in WHY.items()]
    return [(why, n) for why, n in counts if n]


def _paid(replica: Ints, last: int) -> Ints:
    open_ = np.where(replica[:, el.IS_PAID] == 1, last - replica[:, el.PAID_SINCE], 0)
    return replica[:, el.PAID] + np.maximum(open_, 0)


def _in_status(replica: Ints, status: int, column: int, last: int) -> Ints:
    is_open = replica[:, el.STATUS] == status
    return replica[:, column] + np.where(is_open, np.maximum(last - replica[:, el.SINCE], 0), 0)


def _cut(replica: Ints, starting: Ints, ready: Ints, *, last: int) -> tuple[Ints, Ints]:
    """Times up to the last response: clocks may have gone on a little while engines still ran.

    What lies past it came just before the present status: a start before being ready, else work.
    """
    over = np.maximum(replica[:, el.SINCE] - last, 0)
    is_ready = replica[:, el.STATUS] == el.READY
    from_start = np.where(is_ready, np.minimum(over, starting), 0)
    return starting - from_start, np.maximum(ready - (over - from_start), 0)


def _times_in_status(replica: Ints, last: int) -> dict[str, Ints]:
    """Ticks that every replica was ready, starting and failed."""
    starting, ready = _cut(
        replica,
        _in_status(replica, el.STARTING, el.STARTING_TIME, last),
        _in_status(replica, el.READY, el.READY_TIME, last),
        last=last,
    )
    failed = _in_status(replica, el.FAILED, el.FAILED_TIME, last)
    return {"ready_s": ready, "starting_s": starting, "failed_s": failed}


def _pool_totals(run: Run, served_on: Ints, last: int) -> tuple[PoolTotals, ...]:
    replica, bins = run.state.replica, run.engines.bins
    n_served = np.bincount(served_on, minlength=len(replica))
    paid, times = _paid(replica, last), _times_in_status(replica, last)
    found = []
    for p, pool in enumerate(run.fleet.pools):
        rows = replica[:, el.POOL] == p
        spent = {name: float(column[rows].sum()) / st.TICKS_PER_S for name, column in times.items()}
        use, on_s = _use(run, last, pool=p)
        found.append(
            PoolTotals(
                name=pool.name,
                n_served=int(n_served[rows].sum()),
                n_starts=int(replica[rows, el.N_STARTS].sum()),
                paid_s=float(paid[rows].sum()) / st.TICKS_PER_S,
                busy_s=float(bins[rows, :, st.BUSY_S].sum()),
                start=pool.start,
                use=use,
                on_s=floats(on_s),
                n_steps=int(run.engines.scalar[rows, st.N_STEPS].sum()),
                **spent,
            )
        )
    return tuple(found)


def _timeline(state: el.Elastic) -> FleetTimeline:
    log = state.log[: state.scalar[el.N_LOG]]
    column = log[:, el.LOG_COUNTS :]
    return FleetTimeline(
        at_s=floats(log[:, el.LOG_TIME] / st.TICKS_PER_S),
        pool=ints(log[:, el.LOG_POOL]),
        n_ready=ints(column[:, el.READY]),
        n_starting=ints(column[:, el.STARTING]),
        n_draining=ints(column[:, el.DRAINING]),
        n_failed=ints(column[:, el.FAILED]),
    )


def _counts(s: Ints) -> FleetCounts:
    return FleetCounts(
        n_refusals=int(s[el.N_REFUSALS]),
        n_timeouts=int(s[el.N_TIMEOUTS]),
        n_retries=int(s[el.N_RETRIES]),
        n_resends=int(s[el.N_RESENDS]),
        n_broken=int(s[el.N_BROKEN]),
        n_failures=int(s[el.N_FAILURES]),
        n_reclaims=int(s[el.N_RECLAIMS]),
        n_handovers=int(s[el.N_KV_TRANSFERS]),
    )


def _joined(pools: tuple[PoolTotals, ...]) -> UseOverTime:
    """Shares of all replicas that are on."""
    if len(pools) == 1:
        return pools[0].use
    on_s = np.sum([pool.on_s for pool in pools], axis=0)

    def mean(name: str) -> Floats:
        summed = np.sum([getattr(pool.use, name) * pool.on_s for pool in pools], axis=0)
        return floats(np.divide(summed, on_s, where=on_s > 0, out=np.zeros(len(on_s))))

    return UseOverTime(
        bin_s=pools[0].use.bin_s,
        busy_frac=mean("busy_frac"),
        cache_frac=mean("cache_frac"),
        compute_frac=mean("compute_frac"),
        bandwidth_frac=mean("bandwidth_frac"),
    )


def _use(run: Run, last: int, *, pool: int) -> tuple[UseOverTime, Floats]:
    """Shares of a pool's replicas that are on, each bin for itself; and how long they are."""
    widths = run.engines.scalar[:, st.BIN_WIDTH]
    width = int(widths.max())
    pool_of, n_blocks = run.state.replica[:, el.POOL], run.engines.limit[:, st.N_BLOCKS]
    total, resident = np.zeros((N_BINS, st.N_SUMS)), np.zeros(N_BINS)
    for bins, own, p in zip(run.engines.bins, widths, pool_of, strict=True):
        if p != pool:
            continue
        n_each = width // int(own)
        folded = bins.reshape(N_BINS // n_each, n_each, st.N_SUMS).sum(axis=1)
        total[: len(folded)] += folded
        resident[: len(folded)] += folded[:, st.BLOCKS_S] / n_blocks[p]
    bin_s, n_bins = width / st.TICKS_PER_S, max(1, -(-last // width))
    on_s = _on_s(run.state, width, n_bins, pool=pool)
    is_on, none = on_s > 0, np.zeros((n_bins, st.N_SUMS))
    shares = np.divide(total[:n_bins], on_s[:, None], where=is_on[:, None], out=none)
    cache = np.divide(resident[:n_bins], on_s, where=is_on, out=np.zeros(n_bins))
    use = UseOverTime(
        bin_s=bin_s,
        busy_frac=floats(shares[:, st.BUSY_S]),
        cache_frac=floats(cache),
        compute_frac=floats(shares[:, st.COMPUTE_S]),
        bandwidth_frac=floats(shares[:, st.READ_S]),
    )
    return use, on_s


def _on_s(state: el.Elastic, width: int, n_bins: int, *, pool: int) -> Floats:
    """Seconds in each bin of replicas that are neither off nor failed; the last bin is whole."""
    log = state.log[: state.scalar[el.N_LOG]]
    edges = np.arange(n_bins + 1, dtype=np.int64) * width
    rows = log[log[:, el.LOG_POOL] == pool]
    on = rows[:, el.LOG_COUNTS :][:, [el.STARTING, el.READY, el.DRAINING]].sum(axis=1)
    at = np.clip(np.append(rows[:, el.LOG_TIME], edges[-1]), 0, edges[-1])
    # The integral of a staircase at the edges: exact, as steps are straight between them.
    area = np.concatenate([[0.0], np.cumsum(on * np.diff(at) / st.TICKS_PER_S)])
    return np.diff(np.interp(edges, at, area))

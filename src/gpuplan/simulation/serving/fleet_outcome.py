"""What a run of a fleet left in its arrays, as values."""

from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.fleet import (
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
from gpuplan.domain.outcome import EngineTotals, Outcome, RequestTimes, UseOverTime
from gpuplan.domain.stream import Grouping, Requests, requests_of
from gpuplan.simulation.serving.arrays import N_BINS
from gpuplan.simulation.serving.fleet_arrays import Jobs, is_closed
from gpuplan.simulation.serving.kernels import elastic_state as el
from gpuplan.simulation.serving.kernels import state as st

ENDS_OF = {el.REFUSED: REFUSED, el.TIMED_OUT: TIMED_OUT, el.LOST: LOST}
WHY = {
    REFUSED: "refused: no room, not even to wait",
    TIMED_OUT: "timed out",
    LOST: "lost: their replicas died too often",
    UNSERVED: "unserved: no replica ever had room",
}


Rows = Ints | slice


class Run(NamedTuple):
    """All of a run that is over."""

    jobs: Jobs
    fleet: ElasticFleet
    engines: st.Engines
    state: el.Elastic
    unservable: tuple[tuple[str, int], ...]


def outcome_of(run: Run) -> FleetOutcome:
    """Every request's end and times, and what became of the replicas."""
    end = _ends(run)
    last = _last_instant(run, end)
    order = _order(run)
    pools = _pool_totals(run, end, last)
    outcome = Outcome(
        requests=_requests(run, order),
        times=_times(run, end, order),
        use=_use(run, last),
        totals=_totals(run, last),
        n_engines=len(run.state.replica),
        refused=(*run.unservable, *_refused(end)),
        paid_engine_s=sum(pool.paid_s for pool in pools),
    )
    return FleetOutcome(
        outcome=outcome,
        end=ints(end[order]),
        n_tries=ints(1 + run.state.job[order, el.N_TRIES]),
        timeline=_timeline(run.state),
        counts=_counts(run.state.scalar),
        pools=pools,
    )


def _ends(run: Run) -> Ints:
    end = np.full(len(run.jobs.requests), UNSERVABLE, dtype=np.int64)
    state = run.state.job[run.jobs.accepted, el.STATE]
    ways = np.full(len(state), UNSERVED, dtype=np.int64)
    for found, way in ENDS_OF.items():
        ways[state == found] = way
    has_end = run.engines.request[run.jobs.accepted, st.END] >= 0
    ways[has_end & ((state == el.SERVED) | (state == el.DONE))] = FINISHED
    end[run.jobs.accepted] = ways
    return end


def _last_instant(run: Run, end: Ints) -> int:
    """The last token, the last client that gave up, or the end of a run that never ends."""
    last = int(run.engines.request[end == FINISHED, st.END].max(initial=0))
    last = max(last, int(run.state.job[:, el.ENDED_AT].max(initial=0)))
    return max(last, int(run.state.scalar[el.NOW])) if np.any(end == UNSERVED) else last


def _order(run: Run) -> Rows:
    """Rows by arrival; those that never came stand last."""
    if not is_closed(run.jobs):
        return slice(None)
    origin = run.state.job[:, el.ORIGIN]
    return np.argsort(np.where(origin < 0, el.NEVER, origin), kind="stable").astype(np.int64)


def _requests(run: Run, order: Rows) -> Requests:
    asked = run.jobs.requests
    if isinstance(order, slice):
        return asked
    origin = run.state.job[order, el.ORIGIN]
    arrive_s = np.maximum.accumulate(np.where(origin < 0, 0, origin) / st.TICKS_PER_S)
    grouping = Grouping(
        session=asked.session[order], prefix_group=asked.prefix_group[order],
        prefix_tokens=asked.prefix_tokens[order], priority=asked.priority[order],
    )  # fmt: skip
    return requests_of(
        arrive_s, asked.input_tokens[order], asked.output_tokens[order], grouping=grouping
    )


def _times(run: Run, end: Ints, order: Rows) -> RequestTimes:
    records, origin = run.engines.request[order], run.state.job[order, el.ORIGIN]
    finished = end[order] == FINISHED
    on = np.where(finished, run.state.job[order, el.ON], 0)
    start_s = np.array([pool.limits.start_s for pool in run.fleet.pools])
    outside_s = np.where(finished, start_s[run.state.replica[on, el.POOL]], 0.0)

    def since(later: int, sooner: Ints) -> Floats:
        return np.where(finished, records[:, later] - sooner, 0) / st.TICKS_PER_S

    rest = np.maximum(run.state.job[order, el.LENGTH] - 1, 1)
    return RequestTimes(
        wait_s=floats(since(st.START, origin)),
        ttft_s=floats(since(st.FIRST, origin) + outside_s),
        tpot_s=floats(since(st.END, records[:, st.FIRST]) / rest),
        e2e_s=floats(since(st.END, origin) + outside_s),
        n_preemptions=ints(records[:, st.PREEMPTED]),
        is_finished=ints(finished),
    )


def _totals(run: Run, last: int) -> EngineTotals:
    s = run.engines.scalar
    return EngineTotals(
        n_steps=int(s[:, st.N_STEPS].sum()),
        n_computed_tokens=int(s[:, st.COMPUTED].sum()),
        n_preemptions=int(s[:, st.N_PREEMPTIONS].sum()),
        n_free_blocks=int(s[:, st.FREE].sum()),
        busy_s=float(run.engines.bins[:, :, st.BUSY_S].sum()),
        span_s=last / st.TICKS_PER_S,
    )


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
    """Times up to the last answer: clocks may have gone on a little while engines still ran.

    What lies past it came just before the present status: a start before being ready, else work.
    """
    over = np.maximum(replica[:, el.SINCE] - last, 0)
    is_ready = replica[:, el.STATUS] == el.READY
    from_start = np.where(is_ready, np.minimum(over, starting), 0)
    return starting - from_start, np.maximum(ready - (over - from_start), 0)


def _pool_totals(run: Run, end: Ints, last: int) -> tuple[PoolTotals, ...]:
    replica, bins = run.state.replica, run.engines.bins
    served_by = replica[run.state.job[end == FINISHED, el.ON], el.POOL]
    paid = _paid(replica, last)
    starting, ready = _cut(
        replica,
        _in_status(replica, el.STARTING, el.STARTING_TIME, last),
        _in_status(replica, el.READY, el.READY_TIME, last),
        last=last,
    )
    times = {
        "ready_s": ready,
        "starting_s": starting,
        "failed_s": _in_status(replica, el.FAILED, el.FAILED_TIME, last),
    }
    found = []
    for p, pool in enumerate(run.fleet.pools):
        rows = replica[:, el.POOL] == p
        spent = {name: float(column[rows].sum()) / st.TICKS_PER_S for name, column in times.items()}
        found.append(
            PoolTotals(
                name=pool.name,
                n_served=int((served_by == p).sum()),
                n_starts=int(replica[rows, el.N_STARTS].sum()),
                paid_s=float(paid[rows].sum()) / st.TICKS_PER_S,
                busy_s=float(bins[rows, :, st.BUSY_S].sum()),
                start=pool.start,
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
        n_handovers=int(s[el.N_HANDOVERS]),
    )


def _use(run: Run, last: int) -> UseOverTime:
    """Shares of the replicas that are on, each bin for itself."""
    widths = run.engines.scalar[:, st.BIN_WIDTH]
    width = int(widths.max())
    pool_of, n_blocks = run.state.replica[:, el.POOL], run.engines.limit[:, st.N_BLOCKS]
    total, held = np.zeros((N_BINS, st.N_SUMS)), np.zeros(N_BINS)
    for bins, own, p in zip(run.engines.bins, widths, pool_of, strict=True):
        n_each = width // int(own)
        folded = bins.reshape(N_BINS // n_each, n_each, st.N_SUMS).sum(axis=1)
        total[: len(folded)] += folded
        held[: len(folded)] += folded[:, st.BLOCKS_S] / n_blocks[p]
    bin_s, n_bins = width / st.TICKS_PER_S, max(1, -(-last // width))
    on_s = _on_s(run.state, width, n_bins)
    shares = np.divide(total[:n_bins], on_s[:, None], where=on_s[:, None] > 0,
                       out=np.zeros((n_bins, st.N_SUMS)))  # fmt: skip
    cache = np.divide(held[:n_bins], on_s, where=on_s > 0, out=np.zeros(n_bins))
    return UseOverTime(
        bin_s=bin_s,
        busy_frac=floats(shares[:, st.BUSY_S]),
        cache_frac=floats(cache),
        compute_frac=floats(shares[:, st.COMPUTE_S]),
        bandwidth_frac=floats(shares[:, st.READ_S]),
    )


def _on_s(state: el.Elastic, width: int, n_bins: int) -> Floats:
    """Seconds in each bin of replicas that are neither off nor failed; the last bin is whole."""
    log = state.log[: state.scalar[el.N_LOG]]
    edges = np.arange(n_bins + 1, dtype=np.int64) * width
    total = np.zeros(n_bins)
    for p in range(len(state.pool)):
        rows = log[log[:, el.LOG_POOL] == p]
        on = rows[:, el.LOG_COUNTS :][:, [el.STARTING, el.READY, el.DRAINING]].sum(axis=1)
        at = np.clip(np.append(rows[:, el.LOG_TIME], edges[-1]), 0, edges[-1])
        # The integral of a staircase at the edges: exact, as steps are straight between them.
        area = np.concatenate([[0.0], np.cumsum(on * np.diff(at) / st.TICKS_PER_S)])
        total += np.diff(np.interp(edges, at, area))
    return total

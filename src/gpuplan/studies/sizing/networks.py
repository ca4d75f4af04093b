"""Fleets for networks that are no language models: batches, their time, and a simulated queue."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.prune import rejection
from gpuplan.candidates.risk import DEVIATIONS, Z_80, error_ratio
from gpuplan.candidates.search import smallest_that_holds
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import CarriedLoad, LimitMargin, Sized, Sizing
from gpuplan.domain.provenance import Estimate, assume
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.domain.scenario.demand import LatencyLimit, MediaShape
from gpuplan.domain.scenario.workload import Generic, Serving, Training
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers, BatchTable
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import CatalogError
from gpuplan.simulation.serving.batching import simulate_servers
from gpuplan.studies.networks.predict import predict_network
from gpuplan.studies.sizing.carried import OUT_RATIO
from gpuplan.studies.sizing.likely import is_likely, likely, preferred, too_unsure
from gpuplan.studies.sizing.streams import RequestStreams
from gpuplan.studies.sizing.task import SizingTask, margin_of
from gpuplan.units import GB

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
ITEMS = 256  # of a recommender, where others take one
HIGHEST_FRAC = 0.95  # utilization beyond which a queue has no steady part worth the name
WEIGHTS_FRAC = 0.9  # of the memory: the rest is for activations and the runtime
BYTES_PER_PARAM = 2.0
POOL = 32  # servers behind one router; of more, one pool speaks for all
LEAST_REQUESTS, MOST_REQUESTS, TURNOVERS = 4_000, 50_000, 10
WARMUP_FRAC = 0.1
BISECTIONS = 3
ALMOST = 0.999
LOAD_FRACS = (0.02, 0.3, 0.6, 0.8, 0.9, HIGHEST_FRAC)  # of the fullest rate, at which waits are run
N_FINE = 97
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class _Queue(NamedTuple):
    """Requests before servers of one kind that take what waits as a batch."""

    streams: RequestStreams
    table: BatchTable
    limits: tuple[LatencyLimit, ...]
    best: NetworkForecast  # the largest batch

    @property
    def full_per_s(self) -> float:
        """Rate of one server that never rests."""
        return self.best.samples_per_s.value

    def latencies_s(self, n_servers: int, requests_per_s: float) -> tuple[float, ...]:
        """Latency by the statistic of each limit, at this rate on so many servers.

        Many of them are pools, each behind a router of its own: one is run for all.
        """
        if n_servers > POOL:
            return self.latencies_s(POOL, requests_per_s * POOL / n_servers)
        n = min(MOST_REQUESTS, max(LEAST_REQUESTS, TURNOVERS * n_servers * self.best.batch))
        arrive_s = self.streams.at(requests_per_s, n).arrive_s
        ones = np.ones(len(arrive_s), dtype=np.int64)
        servers = BatchServers(
            policy=BatchPolicy(max_batch=self.best.batch, max_delay_s=0.0),
            table=self.table,
            n_engines=n_servers,
            router="least_outstanding" if n_servers > 1 else "round_robin",
        )
        outcome = simulate_servers(requests_of(arrive_s, ones, ones), servers)
        e2e_s = outcome.times.e2e_s[int(WARMUP_FRAC * len(arrive_s)) :]
        return tuple(_statistic(e2e_s, limit.statistic) for limit in self.limits)

    def holds(self, n_servers: int, requests_per_s: float) -> bool:
        """Whether every limit is met at this rate."""
        if requests_per_s > HIGHEST_FRAC * n_servers * self.full_per_s:
            return False
        found = self.latencies_s(n_servers, requests_per_s)
        return all(each <= limit.limit_s for each, limit in zip(found, self.limits, strict=True))

    def n_servers(self, requests_per_s: float, *, most_frac: float) -> int | None:
        """The fewest servers that hold the rate; None where far more than enough do not."""
        least = max(1, ceil(requests_per_s / (most_frac * self.full_per_s)))
        high = least + max(1, least // 20)
        return smallest_that_holds(
            lambda n: n >= least and self.holds(n, requests_per_s), least, high, most=4 * least + 8
        )

    def safe_per_s(self, n_servers: int, requests_per_s: float) -> float:
        """The highest rate of one of so many servers that meets the limits."""
        low, high = requests_per_s, HIGHEST_FRAC * n_servers * self.full_per_s
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.holds(n_servers, middle) else (low, middle)
        # A pool of fewer carries less than in proportion: one fewer was not enough.
        fewer = max(1, n_servers - 1)
        return min(low / n_servers, requests_per_s / fewer * ALMOST) if n_servers > 1 else low


def network_sizes(task: SizingTask) -> Sizing:
    """The network on every accelerator, processors included."""
    sized, rejected = task.on_each_accelerator(
        "fp16", lambda candidate, card: _size(task, candidate, card)
    )
    why = "requests wait for the batch that runs, then go together with those that wait"
    batching = assume("batching", f"dynamic, up to {BATCHES[-1]}", why, "capacity of the workload")
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        sized=tuple(sized),
        rejected=rejected,
        assumptions=(*task.policy_assumptions, *task.demand.assumptions, batching),
    )


def eligible(task: SizingTask, sizing: Sizing) -> Sizing:
    """The sizing with fleets that may be chosen: measured or named, and as likely as asked for."""
    chosen = preferred(
        sizing.sized,
        lambda each: task.is_named(each.candidate) or task.is_measured(each.candidate),
        lambda each: is_likely(task, each),
    )
    others = tuple(each for each in sizing.sized if each not in chosen)
    if task.context.options.is_probability_requested and not all(
        is_likely(task, x) for x in chosen
    ):
        unsure = tuple(too_unsure(task, each) for each in sizing.sized)
        return replace(sizing, sized=(), rejected=(*sizing.rejected, *unsure))
    return replace(sizing, sized=tuple(chosen), compared=others)


def _size(task: SizingTask, candidate: Candidate, card: Accelerator) -> Sized | Rejection:
    """As many accelerators as the load takes with the largest batch that the SLOs allow."""
    candidate = replace(candidate, layout=ServingLayout())
    needed = task.model.n_params * BYTES_PER_PARAM
    if needed > WEIGHTS_FRAC * card.memory.marketed_bytes and not card.is_cpu:
        what = f"weights of {needed / GB:.1f} GB need more than its memory"
        return rejection(candidate, "memory", what, "use an accelerator with more memory")
    try:
        forecasts = [_forecast(task, card, batch) for batch in _batches(task)]
    except CatalogError as error:
        # The speed of such networks follows the power limit too; some makers publish none.
        first = error.problems[0]
        return rejection(candidate, "software", f"{first.where}: {first.what}", first.fix)
    streams = _streams(task)
    if not task.limits or streams is None:
        return _by_rate(task, candidate, forecasts)
    return _queued(task, candidate, forecasts, streams)


def _batches(task: SizingTask) -> tuple[int, ...]:
    """Requests that go together; items of a recommender that come one by one go by thousands."""
    work = task.workload.work
    is_single = isinstance(work, Training | Generic) or not work.request.n_texts
    n = ITEMS if task.model.kind == "recommender" and is_single else 1
    return tuple(n * batch for batch in BATCHES)


def _streams(task: SizingTask) -> RequestStreams | None:
    """Arrivals at a rate; of a closed loop, at the rate that its users reach within their SLOs."""
    work = task.workload.work
    if isinstance(task.streams, RequestStreams) or not isinstance(work, Serving):
        return task.streams if isinstance(task.streams, RequestStreams) else None
    return RequestStreams(work.arrivals, work.request, task.context.options.seed)


def _forecast(task: SizingTask, card: Accelerator, batch: int) -> NetworkForecast:
    """A batch of requests; of several texts each, a request is done when all of them are."""
    work = task.workload.work
    n_texts = 1 if isinstance(work, Training | Generic) else work.request.n_texts or 1
    request = network_request(task, batch * n_texts)
    return replace(predict_network(task.model.name, str(card.id), request), batch=batch)


def network_request(task: SizingTask, batch: int) -> NetworkRequest:
    """One batch of what the workload asks for: texts, pictures or recordings."""
    usual = NetworkRequest(batch=batch, n_tokens=max(1, round(task.demand.input_tokens)))
    work = task.workload.work
    if isinstance(work, Training | Generic):
        return usual
    shape: MediaShape = work.request.media
    return replace(
        usual,
        n_steps=shape.n_steps or usual.n_steps,
        image_px=shape.image_width_px,
        width_px=shape.image_width_px or usual.width_px,
        height_px=shape.image_height_px or usual.height_px,
        n_frames=shape.n_frames or usual.n_frames,
        audio_s=shape.audio_s or usual.audio_s,
    )


def _by_rate(task: SizingTask, candidate: Candidate, forecasts: Sequence[NetworkForecast]) -> Sized:
    """Nobody waits: full batches, one after the other."""
    best = max(forecasts, key=lambda each: each.samples_per_s.value)
    busy_frac = task.ceiling_frac(HIGHEST_FRAC)
    return _fleet(task, candidate, best, busy_frac, "by its rate: nobody waits")


def _queued(
    task: SizingTask,
    candidate: Candidate,
    forecasts: Sequence[NetworkForecast],
    streams: RequestStreams,
) -> Sized | Rejection:
    """A request may find a batch running: two of them must pass within the limit."""
    limit = min(task.limits, key=lambda each: each.limit_s)
    alone = [each for each in forecasts[:1] if each.batch_s.value <= limit.limit_s]
    fitting = [each for each in forecasts if 2 * each.batch_s.value <= limit.limit_s] or alone
    if not fitting:
        return _rejected(candidate, forecasts[0], limit)
    best = max(fitting, key=lambda each: each.samples_per_s.value)
    queue = _Queue(streams, _table(forecasts), task.limits, best)
    n = queue.n_servers(task.peak_per_s, most_frac=task.ceiling_frac(HIGHEST_FRAC))
    if n is None:
        return _rejected(candidate, forecasts[0], limit)
    busy_frac = queue.safe_per_s(n, task.peak_per_s) / queue.full_per_s
    fleet = _fleet(task, candidate, best, min(busy_frac, task.ceiling_frac(1.0)), "queue simulated")
    if fleet.need.n_peak == 0:
        return fleet
    waits = _Waits(queue, fleet.need.n_peak)
    sure = likely(task, replace(fleet, carried=waits.carried(task.down_frac(candidate)))) or fleet
    if min(sure.need.n_peak, POOL) != min(fleet.need.n_peak, POOL):
        waits = _Waits(queue, sure.need.n_peak)
    each = task.peak_per_s / sure.need.n_peak
    return replace(sure, limits=waits.margins(each))


class _Waits:
    """Latencies of so many servers over their load, and what slower batches make of them.

    Batches that take f times as long are a slower clock: f times the latency that f times the load
    would have. No further server makes a batch shorter.
    """

    def __init__(self, queue: _Queue, n_servers: int) -> None:
        self._queue, self._n = queue, n_servers
        time = queue.best.batch_s
        self._error = time.scaled(1.0 / time.value)
        self._loads = floats(np.array(LOAD_FRACS) * queue.full_per_s)  # of one server
        found = [queue.latencies_s(n_servers, load * n_servers) for load in self._loads]
        # More load never makes a fleet faster, whatever chance did to single runs.
        self._known = np.maximum.accumulate(np.array(found))

    def _slowed_s(self, loads: Floats, ratio: float) -> Floats:
        """[load, limit] latencies of batches slower by a ratio; infinite where the queue grows."""
        at = loads * ratio
        columns = [np.interp(at, self._loads, column) for column in self._known.T]
        is_beyond = at > self._loads[-1] * (1 + 1e-9)
        return floats(np.where(is_beyond[:, None], np.inf, ratio * np.array(columns).T))

    def carried(self, down_frac: float) -> CarriedLoad:
        """The most load of one server within every limit, at every error of the model."""
        fine = floats(np.geomspace(self._loads[0] / 10.0, 10.0 * self._loads[-1], N_FINE))
        limits_s = np.array([limit.limit_s for limit in self._queue.limits])
        ratios = error_ratio(self._error, DEVIATIONS)
        n_met = [
            int(np.logical_and.accumulate((self._slowed_s(fine, r) <= limits_s).all(axis=1)).sum())
            for r in ratios
        ]
        most = [float(fine[n - 1]) if n else 0.0 for n in n_met]
        return CarriedLoad(
            n_deviations=tuple(DEVIATIONS.tolist()),
            load_per_s=tuple(np.minimum.accumulate(most).tolist()),
            down_frac=down_frac,
        )

    def margins(self, at: float) -> tuple[LimitMargin, ...]:
        """Latencies at this rate of one; what would have no end is out of its limit by half."""
        middle = self._queue.latencies_s(self._n, self._n * at)
        ends = error_ratio(self._error, floats([-Z_80, Z_80]))
        low, high = (self._slowed_s(floats([at]), float(ratio))[0] for ratio in ends)
        return tuple(
            margin_of(limit, _ranged(reached, a, b, limit), reached)
            for limit, reached, a, b in zip(self._queue.limits, middle, low, high, strict=True)
        )


def _ranged(reached_s: float, low_s: float, high_s: float, limit: LatencyLimit) -> Estimate:
    high = high_s if np.isfinite(high_s) else OUT_RATIO * limit.limit_s
    return Estimate(
        value=reached_s,
        low=min(float(low_s), reached_s),
        high=max(float(high), reached_s),
        tier="simulated",
    )


def _fleet(
    task: SizingTask, candidate: Candidate, best: NetworkForecast, busy_frac: float, band: str
) -> Sized:
    rate = best.samples_per_s
    fleet = task.fleet_in_proportion(
        candidate,
        replace(rate.scaled(busy_frac), sources=()),
        full_per_s=rate.value,
        safe_frac=busy_frac,
        method="analytic",
        band=band,
    )
    took_s = best.batch_s.value
    each = f"{took_s:,.3g} s" if took_s >= 1 else f"{took_s * 1e3:.4g} ms"
    batch = f"batches of up to {best.batch}, {each} each"
    return replace(fleet, remarks=(batch,))


def _table(forecasts: Sequence[NetworkForecast]) -> BatchTable:
    """Time of every size: between two that are predicted, on the line through them."""
    sizes = [each.batch for each in forecasts]
    times = [each.batch_s.value for each in forecasts]
    batch_s = np.interp(np.arange(sizes[-1] + 1), [0, *sizes], [0.0, *times])
    nothing = np.zeros_like(batch_s)
    return BatchTable(
        batch_s=floats(batch_s), arithmetic_s=floats(nothing), memory_s=floats(nothing)
    )


def _statistic(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", statistic: str) -> float:
    chance = QUANTILES.get(statistic)
    return float(values.mean() if chance is None else np.quantile(values, chance))


def _rejected(candidate: Candidate, one: NetworkForecast, limit: LatencyLimit) -> Rejection:
    took_s = one.batch_s.value
    reason = (
        f"one sample takes {took_s * 1e3:.4g} ms alone, {limit.metric} {limit.statistic} "
        f"must be within {limit.limit_s * 1e3:.4g} ms"
    )
    fix = f"set {limit.metric} {limit.statistic} to {max(2 * took_s, limit.limit_s) * 1e3:.0f} ms"
    found = rejection(candidate, limit.metric if limit.metric != "itl" else "tpot", reason, fix)
    return replace(found, gap_ratio=max(took_s / limit.limit_s, 1.0))

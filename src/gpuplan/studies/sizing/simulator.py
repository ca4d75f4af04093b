"""Fleets of one candidate, simulated: the same requests against so many replicas at such a load.

All candidates meet the same draws: arrivals of a unit rate, stretched to the load, and lengths by
request. So two fleets differ by merit, not by luck.
"""

from dataclasses import replace
from functools import cache, cached_property
from math import ceil, sqrt

import numpy as np

from gpuplan.candidates.slo import (
    LatencyStatistic,
    TokenGaps,
    latency_statistics,
    meets_limits,
)
from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import LittleClosure, SizingOptions
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Requests
from gpuplan.performance.kernels.regimes import mixed_extra_s
from gpuplan.studies.inference.predict import Ranged
from gpuplan.studies.replay.routed import routed_outcome
from gpuplan.studies.sizing.evaluator import CandidateEvaluator
from gpuplan.studies.sizing.streams import MANY_REQUESTS, Load, RequestStreams, UserStreams

LIKELY_FRAC = 0.8  # of the fullest rate: above, a short look is worth its time
SHORT = 4
BRIEF, BRIEF_FRAC = 2_000, 1 / 2  # requests, and turnovers of a run: the model's error decides
SETTLED_FRAC = 0.1  # of a latency, that chance may move it
LONGER = 4
MOST_LONGER = LONGER**2
OPEN_RATIO = 2.0
# Of the half interval of 90 %: another draw's own bound stays below it 199 times of 200.
CLEAR_RATIO = 4.0
FAR_RATIO = 1.5
FULL_RATIO = 3.0  # of the fullest rate: the queue never empties
LEAST_LEFT = 64  # requests that must have left for a rate to be told
MIXED_RATIO = 1.06  # inferred shares of gaps with a prompt fall short of counted ones by up to this


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """One run of a fleet against its latency SLOs."""

    meets_slo: bool
    latencies: tuple[tuple[LatencyLimit, LatencyStatistic], ...]
    is_overloaded: bool
    little: LittleClosure
    n_running: float  # of one replica, on average
    tpot_mean_s: float
    gaps: TokenGaps
    n_refused: int = 0  # larger than the whole cache

    @property
    def is_undecided(self) -> bool:
        """SLOs are violated by no more than chance could do: a longer run would decide."""
        if self.meets_slo or self.is_overloaded or self.n_refused:
            return False
        broken = [(limit, each) for limit, each in self.latencies if each.bound_s > limit.limit_s]
        return all(
            each.value_s - OPEN_RATIO * (each.bound_s - each.value_s) <= limit.limit_s
            for limit, each in broken
        )

    @property
    def is_settled(self) -> bool:
        """Chance moves no latency by much, or a queue grows anyway."""
        return self.is_overloaded or all(
            each.bound_s - each.value_s <= SETTLED_FRAC * each.value_s for _, each in self.latencies
        )

    @property
    def is_clear(self) -> bool:
        """SLOs are met by more than chance could undo: other draws would say the same."""
        return self.meets_slo and all(
            each.value_s + CLEAR_RATIO * (each.bound_s - each.value_s) <= limit.limit_s
            for limit, each in self.latencies
        )


class FleetSimulator:
    """Simulations of fleets of one candidate."""

    def __init__(
        self,
        candidate: Candidate,
        evaluator: CandidateEvaluator,
        streams: RequestStreams | UserStreams,
        *,
        limits: tuple[LatencyLimit, ...],
        options: SizingOptions,
    ) -> None:
        self.candidate, self.limits = candidate, limits
        self.evaluator, self.streams, self.options = evaluator, streams, options
        self.prepared = evaluator.prepared(candidate)
        self.capacity_per_s = cache(self.prepared.capacity_per_s)
        self._part = cache(self._simulated)

    def ranged(self) -> Ranged:
        """What attaches ranges to predictions of this candidate."""
        return self.evaluator.ranged(self.candidate)

    @property
    def cached_tokens(self) -> float:
        """Of a mean prompt, found in the prefix cache."""
        return self.prepared.cached_tokens

    @property
    def engine_limits(self) -> EngineLimits:
        """What the scheduler of one engine may hand out."""
        return self.prepared.limits

    def token_s(self, n_running: Floats) -> Floats:
        """Mean time per token with so many running and prompts read as they are answered."""
        return self.prepared.token_s(n_running)

    def run(
        self,
        requests_per_s: float,
        n_replicas: int,
        *,
        slowness_ratio: float = 1.0,
        draw: int = 0,
        most_longer: int = MOST_LONGER,
    ) -> SimulatedRun:
        """The load on so many replicas, all steps being slower by a factor.

        Slower steps are a slower clock: more requests per step, and limits of fewer steps. Near
        the fullest rate a short look comes first: a queue that grows is seen at once. Where a
        SLO is violated by no more than chance could do, the run is made longer, up to so many
        times: more replicas would not make the draws any surer.
        """
        rate = requests_per_s * slowness_ratio
        load = Load(requests_per_s, slowness_ratio, draw)
        n = self.n_requests(rate)
        is_full = rate > LIKELY_FRAC * n_replicas * self.capacity_per_s()
        if is_full:
            first = self._once(load, n_replicas, n // SHORT)
            if not first.meets_slo and _is_far(first):
                return first
        found = self._once(load, n_replicas, n)
        if found.is_overloaded and not is_full and meets_limits(found.latencies):
            # Bursts at the end look like a queue that grows: a longer run tells them apart.
            return self._once(load, n_replicas, n * LONGER)
        n_most = MANY_REQUESTS // self.candidate.layout.n_engines
        for longer in (LONGER, MOST_LONGER):
            if not found.is_undecided or longer > most_longer or n * longer > n_most:
                break
            found = self._once(load, n_replicas, n * longer)
        return found

    def look(self, requests_per_s: float, n_replicas: int) -> SimulatedRun:
        """A brief run at the predicted speed: for odds, which the model's error decides."""
        load, in_flight = Load(requests_per_s), requests_per_s * self.residence_s
        least = min(BRIEF, self.options.n_requests)
        n = self.streams.n_requests(BRIEF_FRAC * in_flight, least=least)
        found = self._once(load, n_replicas, n)
        is_full = requests_per_s > LIKELY_FRAC * n_replicas * self.capacity_per_s()
        if found.is_overloaded and not is_full and meets_limits(found.latencies):
            return self._once(load, n_replicas, n * LONGER)
        return found

    def settled(self, requests_per_s: float, n_replicas: int) -> SimulatedRun:
        """As `run`, longer until chance moves no latency by much: what is told of a fleet.

        Near its fullest rate a queue comes and goes slowly: a percentile takes many requests.
        """
        found, n = self.run(requests_per_s, n_replicas), self.n_requests(requests_per_s)
        n_most = MANY_REQUESTS // self.candidate.layout.n_engines
        for longer in (LONGER, MOST_LONGER):
            if found.is_settled or n * longer > n_most:
                break
            found = self._once(Load(requests_per_s), n_replicas, n * longer)
        return found

    def _once(self, load: Load, n_replicas: int, n: int) -> SimulatedRun:
        """The fleet, or the part of it that speaks for all: each part is run once."""
        part, n_run = self.streams.part(load, n_replicas)
        run = self._part(part, n_run, n)
        if n_run == n_replicas:
            return run
        return replace(run, little=_of_all(run.little, n_replicas / n_run))

    def _simulated(self, load: Load, n_replicas: int, n: int) -> SimulatedRun:
        slowness = load.slowness_ratio
        limits = tuple(replace(x, limit_s=x.limit_s / slowness) for x in self.limits)
        played = self.streams.played(self.prepared, load, n_replicas, n=n)
        outcome, rows = played.outcome, played.rows
        columns = _columns(outcome, rows)
        little = _little(outcome, rows)
        n_running = little.n_counted / n_replicas
        gaps = self._gaps(outcome, rows, n_running)
        latencies = latency_statistics(limits, columns, gaps)
        is_met = meets_limits(latencies) and outcome.n_refused == 0
        return SimulatedRun(
            meets_slo=is_met and not played.is_overloaded,
            latencies=latencies,
            is_overloaded=played.is_overloaded,
            little=little,
            n_running=n_running,
            tpot_mean_s=float(columns["tpot"].mean()) if len(columns["tpot"]) else 0.0,
            gaps=gaps,
            n_refused=outcome.n_refused,
        )

    def outcome(self, requests: Requests, n_replicas: int) -> Outcome:
        """What becomes of these requests on so many replicas."""
        # One replica has nothing to route, but the same kernel serves it, loaded already.
        return routed_outcome(requests, self.prepared.fleet(n_replicas))

    def latencies(
        self, outcome: Outcome, rows: Ints, *, n_deviations: float
    ) -> tuple[tuple[LatencyLimit, LatencyStatistic], ...]:
        """Each latency SLO beside what these consecutive requests got.

        TokenGaps that hold a prompt count only beyond so many deviations of chance: prompts come at
        random, so their number in a short stretch has a deviation of its root.
        """
        n_running = _little(outcome, rows).n_counted / self._n_replicas(outcome)
        gaps = self._gaps(outcome, rows, n_running)
        sure = max(0.0, 1.0 - n_deviations / sqrt(max(1, len(rows))))
        return latency_statistics(
            self.limits, _columns(outcome, rows), replace(gaps, mixed_frac=sure * gaps.mixed_frac)
        )

    def _n_replicas(self, outcome: Outcome) -> int:
        return outcome.n_engines // self.prepared.n_engines

    @property
    def residence_s(self) -> float:
        """About how long a request stays on a busy replica."""
        return 2.0 * self.evaluator.idle_times(self.candidate).e2e_s

    @cached_property
    def full_per_s(self) -> float:
        """Requests per second of one replica that never runs out of work: none can do more.

        The closed form takes mean batches; a run may fill them better. The larger one counts.
        """
        if isinstance(self.streams, UserStreams):
            return self.capacity_per_s()
        waiting = self.streams.at(FULL_RATIO * self.capacity_per_s(), self.options.n_requests)
        outcome = self.outcome(waiting, 1)
        left = np.sort((waiting.arrive_s + outcome.times.e2e_s)[outcome.finished])
        if len(left) < LEAST_LEFT:
            return self.capacity_per_s()
        # The middle half: after the batch has filled, before the last requests leave it.
        first, last = len(left) // 4, 3 * len(left) // 4
        rate = (last - first) / max(float(left[last] - left[first]), 1e-12)
        return max(rate, self.capacity_per_s())

    def n_requests(self, rate: float) -> int:
        """Requests of a run that is long enough for its percentiles."""
        in_flight = rate * self.residence_s
        return self.streams.n_requests(in_flight, least=self.options.n_requests)

    def _gaps(self, outcome: Outcome, rows: Ints, n_running: float) -> TokenGaps:
        """How many gaps between tokens hold a prompt, and how long those are."""
        is_apart = self.candidate.layout.is_disaggregated  # no prompt is read between tokens
        if is_apart or all(limit.metric != "itl" for limit in self.limits):
            return TokenGaps(mixed_frac=0.0, mixed_s=0.0)
        p, load = self.prepared, self.evaluator.load
        times, requests = outcome.times, outcome.requests
        decode_s = (times.e2e_s - times.ttft_s)[rows].sum()
        n_gaps = float(np.maximum(requests.output_tokens[rows] - 1, 0).sum())
        first_at = (requests.arrive_s + times.ttft_s)[rows]
        span_s = float(first_at.max() - first_at.min()) if len(rows) else 0.0
        if not n_gaps or span_s <= 0:
            return TokenGaps(mixed_frac=0.0, mixed_s=0.0)
        fresh = max(1.0, load.input_tokens - self.cached_tokens)
        n_chunks = ceil(fresh / self.engine_limits.max_batch_tokens)
        # Prompts whose first tokens come at one instant were read in one step.
        n_steps = n_chunks * len(np.unique(np.round(first_at, 9)))
        met = n_steps / span_s / self._n_replicas(outcome) * float(decode_s)
        step_s = float(self.token_s(np.array([max(1.0, n_running)]))[0])
        extra_s = float(mixed_extra_s(p.work, p.step, p.case, max(1.0, n_running))) / n_chunks
        return TokenGaps(mixed_frac=min(1.0, MIXED_RATIO * met / n_gaps), mixed_s=step_s + extra_s)


def _is_far(trial: SimulatedRun) -> bool:
    """A SLO is violated by so much that a longer run would not mend it."""
    return any(each.value_s > FAR_RATIO * limit.limit_s for limit, each in trial.latencies)


def _columns(outcome: Outcome, rows: Ints) -> dict[str, Floats]:
    times = outcome.times
    many = rows[outcome.requests.output_tokens[rows] > 1]
    return {"ttft": times.ttft_s[rows], "tpot": times.tpot_s[many], "e2e": times.e2e_s[rows]}


def _little(outcome: Outcome, rows: Ints) -> LittleClosure:
    """Rate and residence of the measured requests, and what was in flight, counted by time."""
    requests, times = outcome.requests, outcome.times
    start, end = float(requests.arrive_s[rows[0]]), float(requests.arrive_s[rows[-1]])
    left = np.minimum(requests.arrive_s + times.e2e_s, end)
    inside = np.maximum(left - np.maximum(requests.arrive_s, start), 0.0)
    span_s = max(end - start, 1e-12)
    rate = (len(rows) - 1) / span_s
    residence = float(times.e2e_s[rows].mean())
    resident = requests.input_tokens + 0.5 * requests.output_tokens
    return LittleClosure(
        requests_per_s=rate,
        residence_s=residence,
        n_in_flight=rate * residence,
        n_counted=float(inside.sum() / span_s),
        cache_tokens=float((inside * resident).sum() / span_s),
    )


def _of_all(little: LittleClosure, ratio: float) -> LittleClosure:
    """Of a whole fleet, where a part of it was run."""
    return replace(
        little,
        requests_per_s=ratio * little.requests_per_s,
        n_in_flight=ratio * little.n_in_flight,
        n_counted=ratio * little.n_counted,
        cache_tokens=ratio * little.cache_tokens,
    )

"""The load that a replica carries at every error of the model, from a few runs of one fleet.

Two errors move together. Latencies at a load lie as far from the model as measurements of such
latencies do; steps that are slower, as far as TPOT measured at a known concurrency says, also bring
a fleet nearer to its fullest rate: what queues then is simulated. The worse of both counts.
"""

from functools import cached_property
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from gpuplan.candidates.risk import DEVIATIONS, Z_80, RiskSamples, error_ratio, risk_samples
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.sizing import CarriedLoad, LimitMargin
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.sizing.simulator import FleetSimulator, SimulatedRun
from gpuplan.studies.sizing.streams import Load
from gpuplan.studies.sizing.task import margin_of

START_DEVIATIONS = 0.84  # of the model's error: what is carried there is asked for most often
STEP_RATIO, LOWER_RATIO = 1.4, 2.0  # between loads that are run, upward and downward
N_LOWER, IDLE_LOAD_FRAC = 3, 1 / 64  # steps down to where all is well; and a load as good as none
NEAR_IDLE_RATIO = 1.05  # of the latencies of an idle replica: no load is much quicker
BOUND_FRACS = (1.0, 0.85)  # of a load, at which one run shows that odds are too small
STEEP_RATIO = 2.0  # between latencies of neighbouring loads: one more is run between them
SURE_DEVIATIONS, LUCKY_DEVIATIONS = 1.65, -0.5  # of the model's error, at which that is judged
OVERLOAD_RATIO = 1.1  # of the fullest rate: beyond it a run would only show the queue grow
N_SPLITS = 2  # of the load between what is served and what is not
N_FINE = 481
GUESSED_FRAC, LEAST_GUESS_FRAC = 0.8, 0.05  # of the fullest rate, where a search begins
TAIL_RATIO = 1.15  # of a high percentile of the time per token over its mean
OUT_RATIO = 1.5  # of a limit: what is told of a queue that grows
IDLE_FRAC = 0.99  # of the closed form of an idle replica: runs round their steps
RANGED = {"ttft": "ttft_mean_ms", "tpot": "tpot_mean_ms", "itl": "tpot_mean_ms", "e2e": "e2e_s"}


def best_odds_frac(simulator: FleetSimulator, seed: int) -> float:
    """More than any number of replicas reaches: every request is alone on an idle one.

    A median prompt is shorter than the mean one, which alone says nothing of medians.
    """
    n_deviations = risk_samples(seed).n_deviations
    idle = simulator.evaluator.idle_times(simulator.candidate)
    is_met = np.ones(len(n_deviations), dtype=bool)
    for limit in simulator.limits:
        if limit.statistic != "p50":
            unit = simulator.ranged().estimate(RANGED[limit.metric], 1.0)
            least_s = idle.of(limit.metric) * IDLE_FRAC * error_ratio(unit, n_deviations)
            is_met &= least_s <= limit.limit_s
    return float(is_met.mean())


def guessed_load(simulator: FleetSimulator) -> CarriedLoad:
    """What one replica would carry at every error by its mean time per token: a search's start."""
    ranged, full = simulator.ranged(), simulator.capacity_per_s()
    tokens = [x.limit_s for x in simulator.limits if x.metric in ("tpot", "itl")]
    slow = np.maximum(1.0, error_ratio(ranged.step_time(), DEVIATIONS))
    load = GUESSED_FRAC * full / slow
    if tokens:
        errors = error_ratio(ranged.estimate(RANGED["tpot"], 1.0), DEVIATIONS)
        within = [min(tokens) / TAIL_RATIO / float(error) for error in errors]
        load = np.minimum(load, [simulator.capacity_per_s(each) for each in within])
    least = np.minimum.accumulate(np.maximum(load, LEAST_GUESS_FRAC * full))
    return CarriedLoad(
        n_deviations=tuple(DEVIATIONS.tolist()), load_per_s=tuple(least.tolist()), down_frac=0.0
    )


class LatencyProfile:
    """Latencies of so many replicas over their load, and what the model's error makes of them.

    Loads are steps from the candidate's own guess: neither the planned load nor the search that
    asks decides where a fleet is run, so that every search finds the same.
    """

    def __init__(self, simulator: FleetSimulator, *, n_replicas: int) -> None:
        self._runs, self._n = simulator, n_replicas
        self._limits_s = floats([limit.limit_s for limit in simulator.limits])

    @cached_property
    def _start(self) -> float:
        """The load of a replica that is run first."""
        guess = guessed_load(self._runs)
        return float(np.interp(START_DEVIATIONS, guess.n_deviations, guess.load_per_s))

    @cached_property
    def _measured(self) -> tuple[Floats, Floats]:
        """Loads of one replica, and latencies by load and SLO, as far as no queue grows."""
        rows: dict[float, list[float]] = {}
        load, idle = self._start, self._idle
        if self._run(load, rows):
            self._rises(rows)
        for _ in range(N_LOWER):
            if rows and (self._is_sure(rows) or self._is_idle(rows, idle)):
                break
            is_first, load = not rows, load / LOWER_RATIO
            if self._run(load, rows) and is_first:
                self._between(load, load * LOWER_RATIO, rows)
        self._fill(rows)
        return self._table(idle | rows if rows else rows)

    @property
    def _idle(self) -> dict[float, list[float]]:
        """Latencies of a replica that has nearly nothing to do, however many there are."""
        rows: dict[float, list[float]] = {}
        self._run(IDLE_LOAD_FRAC * self._start, rows, n=1)
        return rows

    def _rises(self, rows: dict[float, list[float]]) -> None:
        """Runs at higher and higher loads, up to where not even a lucky model is quick enough."""
        load = self._start
        while self._is_met(rows[max(rows)], LUCKY_DEVIATIONS):
            higher = STEP_RATIO * load
            if not self._run(higher, rows):
                self._between(load, higher, rows)
                return
            load = higher

    def _fill(self, rows: dict[float, list[float]]) -> None:
        """One run more between neighbours whose latencies lie far apart."""
        loads = sorted(rows)
        for low, high in pairwise(loads):
            rise = np.array(rows[high]) / np.array(rows[low])
            if np.any(rise > STEEP_RATIO) and self._is_met(rows[low], LUCKY_DEVIATIONS):
                self._run(sqrt(low * high), rows)

    @staticmethod
    def _is_idle(rows: dict[float, list[float]], idle: dict[float, list[float]]) -> bool:
        """Whether the lowest load is about as quick as none."""
        lowest = np.array(rows[min(rows)])
        return any(bool(np.all(lowest <= NEAR_IDLE_RATIO * np.array(x))) for x in idle.values())

    def is_unlikely(self, each: float, samples: RiskSamples, level_frac: float) -> bool:
        """Whether one run or two at this load of a replica show that the odds stay below a level.

        Of samples with more demand and a slower model nothing is better than such a run shows.
        """
        is_late = np.zeros(len(samples.luck_frac), dtype=bool)
        for frac in BOUND_FRACS:
            is_late |= self._late(frac * each, samples) & (samples.demand_ratio >= frac)
            if 1.0 - float(is_late.mean()) < level_frac:
                return True
        return False

    def _late(self, each: float, samples: RiskSamples) -> NDArray[np.bool_]:
        """[sample] whether the model errs so far that this load of a replica violates an SLO."""
        rows: dict[float, list[float]] = {}
        if not self._run(each, rows):
            return np.asarray(samples.n_deviations >= 0.0)
        [latencies_s] = rows.values()
        found = zip(latencies_s, self._errors[0], self._limits_s, strict=True)
        late = [s * error_ratio(unit, samples.n_deviations) > most for s, unit, most in found]
        return np.any(late, axis=0) if late else np.zeros(len(samples.luck_frac), dtype=bool)

    def _table(self, rows: dict[float, list[float]]) -> tuple[Floats, Floats]:
        """Loads in rising order and their latencies."""
        loads = sorted(rows)
        # More load never makes a fleet faster, whatever chance did to single runs.
        table = np.array([rows[load] for load in loads]).reshape(len(loads), len(self._limits_s))
        return floats(loads), floats(np.maximum.accumulate(table))

    def _is_sure(self, rows: dict[float, list[float]]) -> bool:
        """Whether the lowest load is carried within every SLO even if steps are far slower."""
        lowest, errors = floats([min(rows)]), floats([SURE_DEVIATIONS])
        found = self._latencies_s(self._table(rows), lowest, errors)
        return bool(np.all(found <= self._limits_s))

    def _between(self, served: float, beyond: float, rows: dict[float, list[float]]) -> None:
        """Runs nearer and nearer to where the queue begins to grow."""
        for _ in range(N_SPLITS):
            middle = sqrt(served * beyond)
            is_served = self._run(middle, rows)
            served, beyond = (middle, beyond) if is_served else (served, middle)

    def _run(self, each: float, rows: dict[float, list[float]], *, n: int = 0) -> bool:
        """Whether so much on each replica is served without a growing queue; it is kept."""
        n = n or self._n
        runs, load = self._runs, Load(each * n)
        if each > OVERLOAD_RATIO * runs.capacity_per_s():
            return False
        if runs.streams.is_beyond(runs.prepared, load, n):
            return False
        run = runs.look(load.requests_per_s, n)
        if run.is_overloaded or run.n_refused:
            return False
        part, n_run = runs.streams.part(load, n)
        at = part.requests_per_s / n_run
        rows[at] = [max(each.value_s, 1e-9) for _, each in run.latencies]
        return True

    def _is_met(self, latencies_s: list[float], n_deviations: float) -> bool:
        """Whether these latencies are within their SLOs if the model errs so far."""
        at = floats([n_deviations])
        errors = [float(error_ratio(unit, at)[0]) for unit in self._errors[0]]
        return bool(np.all(np.array(latencies_s) * errors <= self._limits_s))

    @cached_property
    def _errors(self) -> tuple[list[Estimate], Estimate]:
        """Range of each latency at a load, and of the time of a step."""
        ranged = self._runs.ranged()
        latencies = [ranged.estimate(RANGED[limit.metric], 1.0) for limit in self._runs.limits]
        return latencies, ranged.step_time()

    def latencies_s(self, loads: Floats, n_deviations: Floats) -> Floats:
        """Latencies by error, load and SLO of a replica's loads if the model errs so far."""
        return self._latencies_s(self._measured, loads, n_deviations)

    def _latencies_s(
        self, measured: tuple[Floats, Floats], loads: Floats, n_deviations: Floats
    ) -> Floats:
        known, table = measured
        by_metric, of_steps = self._errors
        slow = error_ratio(of_steps, n_deviations)[:, None]
        columns = []
        for place, unit in enumerate(by_metric):
            error = error_ratio(unit, n_deviations)[:, None]
            remarks = _interpolated(loads[None, :], known, table[:, place]) * error
            stepped = _interpolated(loads[None, :] * slow, known, table[:, place]) * slow
            columns.append(np.where(slow > 1, np.maximum(remarks, stepped), remarks))
        shape = (len(by_metric), len(n_deviations), len(loads))
        return floats(np.array(columns).reshape(shape).transpose(1, 2, 0))

    def carried(self, down_frac: float) -> CarriedLoad:
        """The most load of one replica within every SLO, at every error of the model."""
        known, _ = self._measured
        most = floats(np.zeros(len(DEVIATIONS)))
        if len(known):
            fine = floats(np.geomspace(known[0], known[-1], N_FINE))
            stable = known[-1] / np.maximum(1.0, error_ratio(self._errors[1], DEVIATIONS))
            is_met = np.all(self.latencies_s(fine, DEVIATIONS) <= self._limits_s, axis=2)
            is_met &= fine[None, :] <= stable[:, None] * (1 + 1e-9)
            n_met = np.logical_and.accumulate(is_met, axis=1).sum(axis=1)
            most = np.where(n_met > 0, fine[np.maximum(n_met, 1) - 1], 0.0)
            most = self._runs.streams.whole(floats(most * (1 + 1e-9)), self._n)
        return CarriedLoad(
            n_deviations=tuple(DEVIATIONS.tolist()),
            load_per_s=tuple(np.minimum.accumulate(most).tolist()),
            down_frac=down_frac,
        )

    def margins(self, run: SimulatedRun, each: float) -> tuple[LimitMargin, ...]:
        """Each SLO beside what a run reached, with the model's range at this load of a replica."""
        found = zip(run.latencies, self._ranges(each), strict=True)
        return tuple(
            margin_of(
                limit,
                Estimate(
                    value=at.value_s, low=at.value_s * low, high=at.value_s * high, tier="simulated"
                ),
                at.bound_s,
            )
            for (limit, at), (low, high) in found
        )

    def _ranges(self, each: float) -> list[tuple[float, float]]:
        """Of each SLO, the ends of its 80 % range at this load of one replica, over the middle."""
        known, _ = self._measured
        if len(known) == 0 or known[-1] < each * (1 - 1e-9):
            return [(unit.low, unit.high) for unit in self._errors[0]]
        found = self.latencies_s(floats([each]), floats([-Z_80, 0.0, Z_80]))[:, 0, :]
        # What has no end is out of its SLO by half.
        low, middle, high = np.where(np.isfinite(found), found, OUT_RATIO * self._limits_s)
        return [(float(a / m), float(b / m)) for a, m, b in zip(low, middle, high, strict=True)]


def _interpolated(loads: Floats, known: Floats, latencies_s: Floats) -> Floats:
    """Latencies between measured loads, on log scales; above the last one the queue grows."""
    found = np.exp(np.interp(np.log(loads), np.log(known), np.log(latencies_s)))
    return floats(np.where(loads > known[-1] * (1 + 1e-9), np.inf, found))

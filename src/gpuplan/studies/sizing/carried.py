"""The load that a replica carries at every error of the model, from a few runs of one fleet.

Two errors move together. Latencies at a load lie as far from the model as measurements of such
latencies do; steps that are slower, as far as TPOT measured at a known concurrency says, also bring
a fleet nearer to its fullest rate: what queues then is simulated. The worse of both counts.
"""

from functools import cached_property
from math import sqrt

import numpy as np

from gpuplan.candidates.risk import DEVIATIONS, Z_80, RiskSamples, error_ratio, risk_samples
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.sizing import CarriedLoad, LimitMargin
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.sizing.simulator import FleetSimulator, SimulatedRun
from gpuplan.studies.sizing.streams import Load
from gpuplan.studies.sizing.task import margin_of

LOWER_FRACS = (0.6, 0.2)  # of the planned load, down to where all is well
HIGHER_RATIOS = (1.3, 1.8, 3.0, 5.0, 9.0, 16.0, 30.0, 55.0, 100.0, 180.0)  # up to where nothing is
FEW, N_HIGHER = 2, 2  # replicas that may have little to do today; loads above for more of them
SURE_DEVIATIONS, LUCKY_DEVIATIONS = 1.65, -0.5  # of the model's error, at which that is judged
OVERLOAD_RATIO = 1.1  # of the fullest rate: beyond it a run would only show the queue grow
N_SPLITS = 2  # of the load between what is served and what is not
N_FINE = 161
GUESSED_FRAC, LEAST_GUESS_FRAC = 0.8, 0.05  # of the fullest rate, where a search begins
TAIL_RATIO = 1.15  # of a high percentile of the time per token over its mean
MORE_RATIO, FEWER_RATIO = 1.5, 1.2  # of numbers of replicas that share a load about as well
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


def is_close(known: int, n: int) -> bool:
    """Whether so many replicas whose latencies are known share a load as n do, or hardly worse."""
    return known == n or (min(known, n) > FEW and n / MORE_RATIO <= known <= n * FEWER_RATIO)


class LatencyProfile:
    """Latencies of so many replicas over their load, and what the model's error makes of them."""

    def __init__(
        self,
        simulator: FleetSimulator,
        *,
        n_replicas: int,
        load: float,
        fewer: "LatencyProfile | None" = None,
    ) -> None:
        self._runs, self._n, self._load = simulator, n_replicas, load
        self.n_run = simulator.streams.part(Load(load), n_replicas)[1]  # of them, simulated
        # Their profile goes on where this ends, on either side; close to it they need no other.
        self._fewer = fewer
        self._limits_s = floats([limit.limit_s for limit in simulator.limits])

    @property
    def _is_close(self) -> bool:
        """Whether those whose profile is known share a load as well, or about as well."""
        return self._fewer is not None and is_close(self._fewer.n_run, self.n_run)

    @property
    def _measured(self) -> tuple[Floats, Floats]:
        """Loads of one replica, and latencies by load and SLO, as far as no queue grows."""
        return self._ran[0]

    @property
    def is_open(self) -> bool:
        """Whether higher loads than were run may be carried."""
        return self._ran[1]

    @cached_property
    def _ran(self) -> tuple[tuple[Floats, Floats], bool]:
        """What was measured, and whether that ends before the load that is carried at most."""
        rows: dict[float, list[float]] = {}
        known = 1.0 if self._run(1.0, rows) else 0.0
        is_open = bool(known)
        if self._fewer is not None and self._is_close:
            each = self._load / self._n
            rows |= self._fewer.outside(each, each if known else np.inf)
            is_open = is_open and self._fewer.is_open
        if is_open:
            is_open = self._rises(rows)
        for frac in LOWER_FRACS:
            if rows and self._is_sure(rows):
                break
            is_served = self._run(frac, rows)
            if is_served and not known:
                self._between(frac, 1.0, rows)
                known = frac
        if rows and self._fewer is not None:
            rows |= self._fewer.outside(min(rows), max(rows) if is_open else np.inf)
        return self._table(rows), is_open

    def _rises(self, rows: dict[float, list[float]]) -> bool:
        """Runs at higher and higher loads; whether the last of them may still be too low."""
        known = 1.0
        for ratio in HIGHER_RATIOS if self._n <= FEW else HIGHER_RATIOS[:N_HIGHER]:
            if not self._is_met(rows[max(rows)], LUCKY_DEVIATIONS):
                return False
            if not self._run(ratio, rows):
                self._between(known, ratio, rows)
                return False
            known = ratio
        return True

    def most_odds_frac(self, samples: RiskSamples) -> float:
        """More than the odds of these replicas, from one run at the planned load.

        Of samples with more demand and a slower model nothing is better than that load shows.
        """
        rows: dict[float, list[float]] = {}
        is_late = samples.n_deviations >= 0.0
        if self._run(1.0, rows):
            [latencies_s] = rows.values()
            found = zip(latencies_s, self._errors[0], self._limits_s, strict=True)
            late = [s * error_ratio(unit, samples.n_deviations) > most for s, unit, most in found]
            is_late = np.any(late, axis=0)
        return 1.0 - float(np.mean(is_late & (samples.demand_ratio >= 1.0)))

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

    def outside(self, low: float, high: float) -> dict[float, list[float]]:
        """Latencies at lower and higher loads of a replica: more of them are no slower there."""
        known, table = self._measured
        return {
            float(load): table[i].tolist()
            for i, load in enumerate(known)
            if not low <= load <= high
        }

    def _between(self, served: float, beyond: float, rows: dict[float, list[float]]) -> None:
        """Runs nearer and nearer to where the queue begins to grow."""
        for _ in range(N_SPLITS):
            middle = sqrt(served * beyond)
            is_served = self._run(middle, rows)
            served, beyond = (middle, beyond) if is_served else (served, middle)

    def _run(self, ratio: float, rows: dict[float, list[float]]) -> bool:
        """Whether so much of the planned load is served without a growing queue; it is kept."""
        load = ratio * self._load
        if load > OVERLOAD_RATIO * self._n * self._runs.capacity_per_s():
            return False
        if self._runs.streams.is_beyond(self._runs.prepared, Load(load), self._n):
            return False
        run = self._runs.run(load, self._n, most_longer=1)
        if run.is_overloaded or run.n_refused:
            return False
        rows[load / self._n] = [max(each.value_s, 1e-9) for _, each in run.latencies]
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
            told = _interpolated(loads[None, :], known, table[:, place]) * error
            stepped = _interpolated(loads[None, :] * slow, known, table[:, place]) * slow
            columns.append(np.where(slow > 1, np.maximum(told, stepped), told))
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

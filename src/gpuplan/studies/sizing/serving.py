"""The smallest fleet of one candidate that meets its SLOs, by simulation."""

from dataclasses import replace
from functools import cache, cached_property
from math import ceil

from gpuplan.candidates.need import load_points, loads_of, need_of
from gpuplan.candidates.risk import rate_within, risk_samples
from gpuplan.candidates.search import largest_load, smallest_that_holds, staffing_bracket
from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.sizing import (
    CarriedLoad,
    LittleClosure,
    PoolUtilization,
    ReplicaNeed,
    Sized,
)
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.inference.configuration import startup
from gpuplan.studies.sizing.adapters import adapter_lines
from gpuplan.studies.sizing.carried import (
    OVERLOAD_RATIO,
    LatencyProfile,
    best_odds_frac,
    guessed_load,
)
from gpuplan.studies.sizing.draw import power_by_load, replica_power
from gpuplan.studies.sizing.likely import likely_need, middle_load, sure_need, with_odds
from gpuplan.studies.sizing.reasons import band_text, no_fleet, violations_text
from gpuplan.studies.sizing.simulator import LONGER, MOST_LONGER, FleetSimulator, SimulatedRun
from gpuplan.studies.sizing.streams import Load
from gpuplan.studies.sizing.task import SizingTask

# The fluid bound is of mean batches; runs may fill them a little better.
SOUND_FRAC = 0.9
TOKEN_SLACK_RATIO = 1.1
MOST_OVER_FLUID = 16
POOL = 32  # larger fleets are sized as pools of so many, each behind its own router
LEAST_POOL = 4
OTHER_DRAWS = (1, 2)  # that a number of replicas must hold on as well; a replay begins with 2
LOAD_TOLERANCE_FRAC = 0.01


class ServingSizer:
    """The smallest fleet of one simulated candidate at one demand."""

    def __init__(self, task: SizingTask, simulator: FleetSimulator) -> None:
        self.task, self.demand, self.simulator = task, task.demand, simulator
        self._profile = cache(self._profile_of)
        self._carried = cache(self._carried_by)
        # Replicas of several engines are simulated engine by engine: fewer of them make a pool.
        n_engines = simulator.candidate.layout.n_engines
        # Where odds decide, it is not the last replica at the predicted speed that matters.
        is_sampled = task.context.options.min_probability_frac is not None
        self._most_longer = 1 if is_sampled or n_engines > 1 else MOST_LONGER
        self._n_pool = max(LEAST_POOL, POOL // n_engines)

    def least(self) -> int:
        """Replicas below which the load cannot be carried at all, whatever the luck."""
        return max(1, ceil(self.task.peak_per_s / self.least_per_s() - 1e-9))

    def least_per_s(self) -> float:
        """More than one replica can carry: what bounds costs from below."""
        return self._bound_per_s() / SOUND_FRAC

    def _bound_per_s(self) -> float:
        """The most that one replica could carry: full, or as full as its time per token allows."""
        tokens = [
            limit.limit_s
            for limit in self.simulator.limits
            if limit.metric in ("tpot", "itl") and limit.statistic != "p50"
        ]
        bound = self.simulator.capacity_per_s(TOKEN_SLACK_RATIO * min(tokens)) if tokens else 0.0
        return bound or self.simulator.capacity_per_s()

    def n_at(
        self, load: float, *, slowness_ratio: float = 1.0, n_most: int | None = None, near: int = 0
    ) -> int | None:
        """The fewest replicas that meet the SLOs at this load, about so many; None: none do."""
        fluid = load * slowness_ratio / self._bound_per_s()
        if self._is_pooled(load * slowness_ratio):
            return self._n_in_pools(load, slowness_ratio=slowness_ratio)
        low, high = (near, near + 1 + near // 8) if near else staffing_bracket(SOUND_FRAC * fluid)
        if n_most is not None and low > n_most:
            return None
        most = _most_tried(fluid) if n_most is None else min(n_most, _most_tried(fluid))
        return smallest_that_holds(
            lambda n: self._holds(load, n, slowness_ratio=slowness_ratio),
            low,
            high,
            most=max(low, most),
        )

    def _is_pooled(self, load: float) -> bool:
        """So much load that it is sized as several pools; a part of a closed loop speaks for it."""
        return self.demand.n_users is None and load / self._bound_per_s() > self._n_pool

    def _holds(self, load: float, n: int, *, slowness_ratio: float = 1.0, draw: int = 0) -> bool:
        """So many replicas meet the SLOs, below the highest utilization that is allowed."""
        if not self._is_allowed(load, n, slowness_ratio):
            return False
        run = self.simulator.run(
            load, n, slowness_ratio=slowness_ratio, draw=draw, most_longer=self._most_longer
        )
        return run.meets_slo

    def _is_allowed(self, load: float, n: int, slowness_ratio: float = 1.0) -> bool:
        """Whether so many may be asked for so much: no more is in flight than can run."""
        simulator, ceiling = self.simulator, self.task.resilience.max_utilization_frac
        if ceiling is None:
            ceiling = OVERLOAD_RATIO if simulator.limits else simulator.options.max_utilization_frac
        if load * slowness_ratio > ceiling * n * simulator.capacity_per_s():
            return False
        at = Load(load, slowness_ratio)
        return not simulator.streams.is_beyond(simulator.prepared, at, n)

    def _n_in_pools(self, load: float, *, slowness_ratio: float) -> int | None:
        """Fleets of many pools: what one pool carries, times as many as it takes."""
        full = self._n_pool * self.simulator.capacity_per_s() / slowness_ratio

        def holds(at: float) -> bool:
            # Many pools rest on this one: it holds on two sets of draws, or it does not hold.
            return all(
                self._holds(at, self._n_pool, slowness_ratio=slowness_ratio, draw=draw)
                for draw in (0, 1)
            )

        known = 0.25 * full
        if not holds(known):
            return None
        most = largest_load(holds, known=known, limit=full, rel_tol=LOAD_TOLERANCE_FRAC)
        return ceil(load / most * self._n_pool - 1e-9)

    def size(self, *, n_most: int | None = None) -> Sized | Rejection | None:
        """The candidate with its fleet, verified on fresh draws; or why no fleet meets the SLOs.

        None: it would take more replicas at the peak than are worth asking for; where others are
        likely enough, no number is of one that never can be.
        """
        if n_most is not None and not self.may_be_likely:
            return None
        if n_most is not None and self._is_unlikely(n_most):
            return None
        sure = self._sure_need(n_most) if self.may_be_likely else None
        if sure is not None and n_most is not None and sure.n_peak > n_most:
            return None
        if sure is not None and self._holds_surely(sure):
            sized = self._measured(sure.n_peak, need=sure, remarks=self._pooled)
            middle = middle_load(self._carried_with(sure))
            n_predicted = min(sure.n_peak, _n_at(self.task.peak_per_s, middle))
            return with_odds(self.task, sized, n_predicted)
        return self._size_predicted(n_most)

    def _size_predicted(self, n_most: int | None) -> Sized | Rejection | None:
        """The fewest at the predicted speed, then as many as the probability asked for takes."""
        peak = self.task.peak_per_s
        n = self.n_at(peak, n_most=n_most, near=self._n_near(peak))
        is_cut = n_most is not None and n_most < _most_tried(peak / self._bound_per_s())
        if is_cut and (n is None or n > n_most):  # type: ignore[operator]
            return None
        if n is not None and not self._is_pooled(peak):
            n = self._verified(peak, n)
        if n is None:
            return no_fleet(self.simulator)
        need = need_of(self.demand, self._by_load(peak, n))
        return self._likely(need, n_most=n_most, remarks=self._pooled)

    def _n_near(self, load: float) -> int:
        """About as many as the predicted speed needs, from brief runs; 0: not known."""
        n = _n_at(load, middle_load(guessed_load(self.simulator)))
        for _ in range(2):
            each = middle_load(self._carried(n))
            if each <= 0 or self._is_pooled(load):
                return 0
            n = _n_at(load, each)
        return n

    def _sure_need(self, n_most: int | None) -> ReplicaNeed | None:
        """As many as the probability asked for takes, by the odds alone; None: not known."""
        guess, candidate = guessed_load(self.simulator), self.simulator.candidate
        return sure_need(self.task, candidate, guess, self._carried, n_most=n_most)

    def _is_unlikely(self, n: int) -> bool:
        """Whether a run or two show already that so many are not as likely as is asked for."""
        options, candidate = self.task.context.options, self.simulator.candidate
        level = options.min_probability_frac
        if level is None:
            return False
        n_up = n + self.task.reserve(candidate, n).n_spare
        each, profile = self.task.peak_per_s / n_up, self._profile(self._spokesmen(n_up))
        return profile.is_unlikely(each, risk_samples(options.seed), level)

    def _carried_with(self, need: ReplicaNeed) -> CarriedLoad:
        """What each carries with the spares beside them, all of them up."""
        n = need.n_peak
        return self._carried(n + self.task.reserve(self.simulator.candidate, n).n_spare)

    def _holds_surely(self, need: ReplicaNeed) -> bool:
        """So many are enough at the predicted speed too: at the peak, and in quieter hours."""
        peak, n = self.task.peak_per_s, need.n_peak
        n_run, at = self._part_of(n)
        run = self.peak_run(peak, n)
        if not self._is_allowed(at, n_run) or not run.meets_slo:
            return False
        if not run.is_clear and not all(self._holds(at, n_run, draw=draw) for draw in OTHER_DRAWS):
            return False
        loads, replicas = loads_of(self.demand).ravel(), need.n_replicas.ravel()
        quiet = [x for x in load_points(self.demand) if x < peak]
        return all(self._holds(x, int(replicas[loads >= x * (1 - 1e-9)].min())) for x in quiet)

    def resized(self, sized: Sized, *, need: ReplicaNeed, remark: str) -> Sized:
        """The same candidate in another number, measured anew."""
        remarks = (*sized.remarks, remark)
        found = self._likely(need, n_most=None, remarks=remarks)
        assert found is not None
        return found

    def _likely(
        self, need: ReplicaNeed, *, n_most: int | None, remarks: tuple[str, ...]
    ) -> Sized | None:
        """At least so many, as surely as is asked for; None: that takes more than the most."""
        candidate, found = self.simulator.candidate, need
        if self.may_be_likely:
            likely = likely_need(self.task, candidate, need, self._carried, n_most=n_most)
            if likely is None:
                return None
            found = likely
        sized = self._measured(found.n_peak, need=found, remarks=remarks)
        return with_odds(self.task, sized, need.n_peak)

    @cached_property
    def may_be_likely(self) -> bool:
        """Whether some number of replicas could reach the probability asked for."""
        options = self.task.context.options
        level = options.min_probability_frac
        return level is None or best_odds_frac(self.simulator, options.seed) >= level

    def _carried_by(self, n: int) -> CarriedLoad:
        """What each of so many replicas carries, all of them up."""
        profile = self._profile(self._spokesmen(n))
        return profile.carried(self.task.down_frac(self.simulator.candidate))

    def _profile_of(self, n: int) -> LatencyProfile:
        return LatencyProfile(self.simulator, n_replicas=n)

    def _spokesmen(self, n: int) -> int:
        """Replicas that are run for the odds of so many."""
        return self.simulator.streams.spokesmen(min(n, self._n_pool))

    def _part_of(self, n: int) -> tuple[int, float]:
        """Replicas that are run for so many, and their part of the peak."""
        peak = self.task.peak_per_s
        n_run = self._n_pool if self._is_pooled(peak) else n
        return n_run, peak * n_run / n

    def _measured(self, n: int, *, need: ReplicaNeed, remarks: tuple[str, ...]) -> Sized:
        """What so many replicas reach, hold and draw at the peak."""
        prepared, peak = self.simulator.prepared, self.task.peak_per_s
        last = self.peak_run(peak, n)
        reserve = self.task.reserve(self.simulator.candidate, n)
        alone = self._carried(n)  # spares may be down
        return Sized(
            candidate=self.simulator.candidate,
            method="simulated",
            need=need,
            reserve=reserve,
            capacity_per_s=rate_within(alone, n * middle_load(alone), n=n, peak=peak),
            carried=self._carried(n + reserve.n_spare),
            limits=self._profile(self._spokesmen(n)).margins(last, peak / n),
            little=_with_prefix(last, self.simulator),
            utilization=PoolUtilization(
                peak_frac=self._served_per_s(last) / (n * self.simulator.capacity_per_s()),
                safe_frac=None,
                band="",
            ),
            power=power_by_load(prepared, self._served_per_s(last) / n, self._power(last, n)),
            cold_start_s=startup(prepared.setup, prepared.memory.weights_bytes).get("total"),
            remarks=(*remarks, *adapter_lines(prepared.setup)),
        )

    def _served_per_s(self, run: SimulatedRun) -> float:
        """Requests per second at the peak: offered, or what a closed loop comes to."""
        is_open = self.demand.n_users is None
        return self.task.peak_per_s if is_open else run.little.requests_per_s

    def _by_load(self, peak: float, n_peak: int) -> dict[float, int]:
        """Replicas at a few loads; what carries a higher load carries a lower one."""
        sized = {peak: n_peak}
        above = n_peak
        for load in sorted((x for x in load_points(self.demand) if x < peak), reverse=True):
            above = self._at_most(load, above)
            sized[load] = above
        for load in (x for x in load_points(self.demand) if x > peak):
            # A load that cannot be sized is left to proportion.
            n = self.n_at(load)
            sized |= {} if n is None else {load: max(n, n_peak)}
        return sized

    def _at_most(self, load: float, known: int) -> int:
        """The fewest up to a number that is known to hold."""
        if self._is_pooled(load):
            return self.n_at(load) or known

        low, _ = staffing_bracket(SOUND_FRAC * load / self._bound_per_s())
        found = smallest_that_holds(
            lambda n: n >= known or self._holds(load, n), min(low, known), known, most=known
        )
        return found or known

    def _verified(self, load: float, n: int) -> int | None:
        """The same on other draws; one more replica until these hold as well."""
        step = max(1, n // self._n_pool)
        for more in range(0, MOST_OVER_FLUID * step, step):
            if not self.simulator.settled(load, n + more).meets_slo:
                continue
            if all(self._holds(load, n + more, draw=draw) for draw in OTHER_DRAWS):
                return n + more
        return None

    def peak_run(self, peak: float, n: int) -> SimulatedRun:
        """A run at this size; of one pool, where there are several."""
        n_run = self._n_pool if self._is_pooled(peak) else n
        return self.simulator.settled(peak * n_run / n, n_run)

    def _power(self, run: SimulatedRun, n: int) -> Estimate | None:
        output = max(1.0, self.simulator.evaluator.load.output_tokens)
        rate = _ranged_rate(self.simulator, self._served_per_s(run) / n * output)
        return replica_power(self.simulator.prepared, rate, run.n_running)

    @property
    def _pooled(self) -> tuple[str, ...]:
        if not self._is_pooled(self.task.peak_per_s):
            return ()
        return (f"sized as pools of {self._n_pool} replicas, each behind a router of its own",)

    def _is_met(self, load: float, n: int) -> bool:
        simulator = self.simulator
        if simulator.streams.is_beyond(simulator.prepared, Load(load), n):
            return False
        return simulator.run(load, n, most_longer=LONGER).meets_slo

    def with_safety(self, sized: Sized) -> Sized:
        """With the highest utilization at which this very pool meets its SLOs."""
        n = sized.n_serving
        if self._is_pooled(self.task.peak_per_s):
            n = self._n_pool
        known = self.task.peak_per_s * n / sized.n_serving
        served_ratio = self._served_per_s(self.peak_run(known, n)) / self.task.peak_per_s
        # An engine that preempts when it is overfull does less than at a load that it carries.
        full = max(n * self.simulator.full_per_s, served_ratio * known)
        most = largest_load(
            lambda load: self._is_met(load, n),
            known=known,
            limit=full / served_ratio,
            rel_tol=0.02,
        )
        safe = served_ratio * most / full
        band = band_text(safe, sized.n_serving)
        use = PoolUtilization(peak_frac=served_ratio * known / full, safe_frac=safe, band=band)
        return replace(sized, utilization=use)

    def too_few(self, sized: Sized) -> tuple[str, ...]:
        """What one fewer than the predicted speed needs would violate."""
        peak, n_predicted = self.task.peak_per_s, sized.n_serving
        if sized.carried is not None:
            n_predicted = min(n_predicted, _n_at(peak, middle_load(sized.carried)))
        if n_predicted <= 1 or self._is_pooled(peak):
            return ()
        run = self.simulator.run(peak, n_predicted - 1)
        verb = "is" if n_predicted == 2 else "are"
        why = violations_text(run)
        return () if run.meets_slo else (f"{n_predicted - 1} {verb} not enough: {why}",)


def _ranged_rate(simulator: FleetSimulator, per_s: float) -> Estimate:
    ranged = simulator.ranged().estimate("output_tokens_per_s", per_s)
    return replace(ranged, tier="simulated")


def _n_at(load: float, each: float) -> int:
    """Replicas for a load of which one carries so much."""
    return max(1, ceil(load / max(each, 1e-12) - 1e-9))


def _most_tried(fluid: float) -> int:
    """Replicas beyond which no more help."""
    return ceil(MOST_OVER_FLUID * fluid) + MOST_OVER_FLUID


def _with_prefix(run: SimulatedRun, simulator: FleetSimulator) -> LittleClosure:
    little = run.little
    resident = little.cache_tokens + simulator.cached_tokens * little.n_counted
    return replace(little, cache_tokens=resident)

"""The smallest fleet of one candidate that keeps its promises, by simulation."""

from dataclasses import replace
from math import ceil, inf

from gpuplan.calibration.startup import start_constants, start_estimates
from gpuplan.candidates.need import load_points, need_of
from gpuplan.candidates.reserve import reserve_for
from gpuplan.candidates.search import largest_load, smallest_that_holds, staffing_bracket
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.startup import StartConditions
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import (
    DemandProfile,
    LimitMargin,
    LittleClosure,
    PoolUtilization,
    ReplicaNeed,
    Reserve,
    Sized,
)
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.terms import Resilience
from gpuplan.performance.serving.startup import startup_phases
from gpuplan.studies.power.serving import power_at_rate
from gpuplan.studies.sizing.candidates import Bench
from gpuplan.studies.sizing.trials import LONGER, Runs, Trial

# The fluid bound is of mean batches; runs may fill them a little better.
SOUND_FRAC = 0.9
TOKEN_SLACK_RATIO = 1.1
OVERLOAD_RATIO = 1.1  # of the fullest rate: beyond it a run would only show the queue grow
MOST_OVER_FLUID = 16
POOL = 32  # larger fleets are sized as pools of so many, each behind its own router
LOAD_TOLERANCE_FRAC = 0.01
FEW = 2  # replicas; of so few one may carry far more than its share of today's peak
ROUGH_FRAC = 0.15  # how closely that is looked for
USUAL_BAND = (0.70, 0.90)
RANGED = {"ttft": "ttft_mean_ms", "tpot": "tpot_mean_ms", "itl": "tpot_mean_ms", "e2e": "e2e_s"}


class ServingSizer:
    """Sizes candidates of one workload at one demand."""

    def __init__(
        self,
        bench: Bench,
        demand: DemandProfile,
        resilience: Resilience,
        *,
        node_size: dict[str, int],
    ) -> None:
        self.bench, self.demand, self.resilience = bench, demand, resilience
        self.node_size = node_size

    @property
    def peak_per_s(self) -> float:
        """Of the first period."""
        return self.demand.peak_of(0, 0)

    def least(self, runs: Runs) -> int:
        """Replicas below which the load cannot be carried at all, whatever the luck."""
        return max(1, ceil(self.peak_per_s / self.least_per_s(runs) - 1e-9))

    def least_per_s(self, runs: Runs) -> float:
        """More than one replica can carry: what bounds costs from below."""
        return self._bound_per_s(runs) / SOUND_FRAC

    def n_spare(self, candidate: Candidate, n_serving: int) -> int:
        """Reserve beside so many."""
        return self._reserve(candidate, n_serving).n_spare

    def _reserve(self, candidate: Candidate, n_serving: int) -> Reserve:
        n_node = self.node_size.get(candidate.accelerator, 1)
        return reserve_for(candidate, n_serving, self.resilience, n_accelerators_per_node=n_node)

    def _bound_per_s(self, runs: Runs) -> float:
        """The most that one replica could carry: full, or as full as its time per token allows."""
        tokens = [
            limit.limit_s
            for limit in runs.limits
            if limit.metric in ("tpot", "itl") and limit.statistic != "p50"
        ]
        bound = runs.capacity_per_s(TOKEN_SLACK_RATIO * min(tokens)) if tokens else 0.0
        return bound or runs.capacity_per_s()

    def n_at(
        self, runs: Runs, load: float, *, slowness_ratio: float = 1.0, n_most: int | None = None
    ) -> int | None:
        """The fewest replicas that keep the promises at this load; None: none up to the most."""
        fluid = load * slowness_ratio / self._bound_per_s(runs)
        if self._is_pooled(runs, load * slowness_ratio):
            return self._n_in_pools(runs, load, slowness_ratio=slowness_ratio)

        def holds(n: int) -> bool:
            is_below = self._is_below_ceiling(runs, load, n, slowness_ratio=slowness_ratio)
            return is_below and runs.trial(load, n, slowness_ratio=slowness_ratio).holds

        low, high = staffing_bracket(SOUND_FRAC * fluid)
        if n_most is not None and low > n_most:
            return None
        most = _most_tried(fluid) if n_most is None else min(n_most, _most_tried(fluid))
        return smallest_that_holds(holds, low, high, most=max(low, most))

    def _is_pooled(self, runs: Runs, load: float) -> bool:
        """So much load that it is sized as several pools."""
        return load / self._bound_per_s(runs) > POOL

    def _is_below_ceiling(self, runs: Runs, load: float, n: int, *, slowness_ratio: float) -> bool:
        """The user's ceiling on utilization, a default one where nothing is promised, or all."""
        ceiling = self.resilience.max_utilization_frac
        if ceiling is None:
            ceiling = OVERLOAD_RATIO if runs.limits else runs.options.max_utilization_frac
        return load * slowness_ratio <= ceiling * n * runs.capacity_per_s()

    def _n_in_pools(self, runs: Runs, load: float, *, slowness_ratio: float) -> int | None:
        """Fleets of many pools: what one pool carries, times as many as it takes."""
        full = POOL * runs.capacity_per_s() / slowness_ratio

        def holds(at: float) -> bool:
            is_below = self._is_below_ceiling(runs, at, POOL, slowness_ratio=slowness_ratio)
            # Many pools rest on this one: it holds on two sets of draws, or it does not hold.
            return is_below and all(
                runs.trial(at, POOL, slowness_ratio=slowness_ratio, draw=draw).holds
                for draw in (0, 1)
            )

        known = 0.25 * full
        if not holds(known):
            return None
        most = largest_load(holds, known=known, limit=full, rel_tol=LOAD_TOLERANCE_FRAC)
        return ceil(load / most * POOL - 1e-9)

    def size(self, runs: Runs, *, n_most: int | None = None) -> Sized | Rejection | None:
        """The candidate with its fleet, verified on fresh draws; or why no fleet keeps it.

        None: it would take more replicas at the peak than are worth asking for.
        """
        candidate = runs.prospect.candidate
        peak = self.peak_per_s
        n = self.n_at(runs, peak, n_most=n_most)
        if (
            n is None
            and n_most is not None
            and n_most < _most_tried(peak / self._bound_per_s(runs))
        ):
            return None
        if n is not None and not self._is_pooled(runs, peak):
            n = self._verified(runs, peak, n)
        if n is None:
            return _no_fleet(candidate, runs)
        need = need_of(self.demand, self._by_load(runs, peak, n))
        return self._measured(runs, n, need=need, remarks=self._remarks(runs, peak, n))

    def resized(self, sized: Sized, runs: Runs, *, need: ReplicaNeed, remark: str) -> Sized:
        """The same candidate in another number, measured anew."""
        return self._measured(runs, need.n_peak, need=need, remarks=(*sized.remarks, remark))

    def _measured(
        self, runs: Runs, n: int, *, need: ReplicaNeed, remarks: tuple[str, ...]
    ) -> Sized:
        """What so many replicas reach, hold and draw at the peak."""
        candidate, peak = runs.prospect.candidate, self.peak_per_s
        last = self.peak_trial(runs, peak, n)
        return Sized(
            candidate=candidate,
            method="simulated",
            need=need,
            reserve=self._reserve(candidate, n),
            capacity_per_s=self._ranged_rate(candidate, self._carried_per_s(runs, peak, n)),
            n_slow_end=None,
            limits=self._kept(candidate, last, runs),
            little=_with_prefix(last, runs),
            utilization=PoolUtilization(
                peak_frac=peak / (n * runs.capacity_per_s()), safe_frac=None, band=""
            ),
            power_w=self._power(runs, last, n),
            cold_start_s=_cold_start(runs.prospect.setup, runs.prospect.memory.weights_bytes),
            remarks=remarks,
        )

    def _carried_per_s(self, runs: Runs, peak: float, n: int) -> float:
        """Load of one replica that keeps the promises: of few looked for, else its share.

        One that has little to do today must not seem full: growth and samples rest on this.
        """
        if n > FEW or peak <= 0:
            return peak / n
        most = largest_load(
            lambda load: self._holds_at(runs, load, n), known=peak,
            limit=n * runs.capacity_per_s(), rel_tol=ROUGH_FRAC,
        )  # fmt: skip
        return min(most / n, _share_of_fewer(peak, n))

    def _holds_at(self, runs: Runs, load: float, n: int) -> bool:
        # What is in doubt does not hold: a rough figure is not worth a long run.
        return self._is_below_ceiling(runs, load, n, slowness_ratio=1.0) and (
            runs.trial(load, n, most_longer=1).holds
        )

    def _by_load(self, runs: Runs, peak: float, n_peak: int) -> dict[float, int]:
        """Replicas at a few loads; what carries a higher load carries a lower one."""
        sized = {peak: n_peak}
        above = n_peak
        for load in sorted((x for x in load_points(self.demand) if x < peak), reverse=True):
            above = self._at_most(runs, load, above)
            sized[load] = above
        for load in (x for x in load_points(self.demand) if x > peak):
            # A load that cannot be sized is left to proportion.
            n = self.n_at(runs, load)
            sized |= {} if n is None else {load: max(n, n_peak)}
        return sized

    def _at_most(self, runs: Runs, load: float, known: int) -> int:
        """The fewest up to a number that is known to hold."""
        if self._is_pooled(runs, load):
            return self.n_at(runs, load) or known

        def holds(n: int) -> bool:
            is_below = self._is_below_ceiling(runs, load, n, slowness_ratio=1.0)
            return n >= known or (is_below and runs.trial(load, n).holds)

        low, _ = staffing_bracket(SOUND_FRAC * load / self._bound_per_s(runs))
        low = min(low, known)
        return smallest_that_holds(holds, low, known, most=known) or known

    def _verified(self, runs: Runs, load: float, n: int) -> int | None:
        """The same on other draws; one more replica until these hold as well."""
        for more in range(MOST_OVER_FLUID):
            if runs.trial(load, n + more, draw=1).holds:
                return n + more
        return None

    def peak_trial(self, runs: Runs, peak: float, n: int) -> Trial:
        """A run at this size; of one pool, where there are several."""
        if not self._is_pooled(runs, peak):
            return runs.trial(peak, n)
        return runs.trial(peak * POOL / n, POOL)

    def _n_slow_end(self, runs: Runs, peak: float) -> int | None:
        """Replicas if every step takes as long as the slow end of the model's range."""
        slowness = self.bench.ranged(runs.prospect.candidate).estimate("tpot_mean_ms", 1.0).high
        floors = self.bench.floors(runs.prospect.candidate)
        if any(slowness * floors.of(limit.metric) > limit.limit_s for limit in runs.limits):
            return None  # even alone on an idle replica a request would be late
        return self.n_at(runs, peak, slowness_ratio=slowness)

    def _kept(self, candidate: Candidate, trial: Trial, runs: Runs) -> tuple[LimitMargin, ...]:
        ranged = self.bench.ranged(candidate)
        return tuple(
            LimitMargin(
                metric=limit.metric,
                statistic=limit.statistic,
                limit_s=limit.limit_s,
                reached_s=replace(
                    ranged.estimate(RANGED[limit.metric], each.value_s), tier="simulated"
                ),
                bound_s=each.bound_s,
            )
            for limit, each in trial.judged
        )

    def _ranged_rate(self, candidate: Candidate, per_s: float) -> Estimate:
        ranged = self.bench.ranged(candidate).estimate("output_tokens_per_s", per_s)
        return replace(ranged, tier="simulated")

    def _power(self, runs: Runs, trial: Trial, n: int) -> Estimate | None:
        output = max(1.0, self.bench.load.output_tokens)
        rate = self._ranged_rate(runs.prospect.candidate, self.peak_per_s / n * output)
        setup = runs.prospect.setup
        return power_at_rate(setup, rate, max(1.0, trial.n_running)).get("power_w")

    def _remarks(self, runs: Runs, peak: float, n: int) -> tuple[str, ...]:
        found = []
        is_pooled = self._is_pooled(runs, peak)
        if n > 1 and not is_pooled:
            found.append(f"{n - 1} would not do: {_broken(runs.trial(peak, n - 1))}")
        if is_pooled:
            found.append(f"sized as pools of {POOL} replicas, each behind a router of its own")
        return tuple(found)

    def with_safety(self, sized: Sized, runs: Runs) -> Sized:
        """With the highest load that this pool carries, and the need if the model is too fast."""
        n = sized.n_serving
        if self._is_pooled(runs, self.peak_per_s):
            n = POOL
        full = n * runs.full_per_s
        known = self.peak_per_s * n / sized.n_serving
        most = largest_load(
            lambda load: runs.trial(load, n, most_longer=LONGER).holds, known=known, limit=full,
            rel_tol=0.02,
        )  # fmt: skip
        safe = most / full
        band = _band(safe, sized.n_serving)
        use = PoolUtilization(peak_frac=known / full, safe_frac=safe, band=band)
        slow = self._n_slow_end(runs, self.peak_per_s)
        carried = min(most / n, _share_of_fewer(known, n)) if n == sized.n_serving else most / n
        rate = self._ranged_rate(sized.candidate, carried)
        return replace(sized, utilization=use, n_slow_end=slow, capacity_per_s=rate)


def _share_of_fewer(load: float, n: int) -> float:
    """Of one replica if there were one fewer, which would not do; inf where there is one alone."""
    return load / (n - 1) * (1 - 1e-9) if n > 1 else inf


def _most_tried(fluid: float) -> int:
    """Replicas beyond which no more help."""
    return ceil(MOST_OVER_FLUID * fluid) + MOST_OVER_FLUID


def _with_prefix(trial: Trial, runs: Runs) -> LittleClosure:
    little = trial.little
    held = little.cache_tokens + runs.cached_tokens * little.n_counted
    return replace(little, cache_tokens=held)


def _band(safe_frac: float, n: int) -> str:
    low, high = USUAL_BAND
    what = f"{n} replica{'s' if n > 1 else ''}"
    if safe_frac < low:
        return (
            f"the usual {low:.0%} to {high:.0%} are too much for {what}: above {safe_frac:.0%} "
            "the promises break"
        )
    if safe_frac > high:
        return f"{what} may run up to {safe_frac:.0%}, above the usual {low:.0%} to {high:.0%}"
    return f"safe up to {safe_frac:.0%} with {what}, within the usual {low:.0%} to {high:.0%}"


def _broken(trial: Trial) -> str:
    """The promises that a run breaks, and its mean time per token."""
    broken = [
        f"{limit.metric} {limit.statistic} would be {_time(each.bound_s)}, "
        f"not {_time(limit.limit_s)}"
        for limit, each in trial.judged
        if each.bound_s > limit.limit_s
    ]
    if trial.n_refused:
        return f"{trial.n_refused} requests are larger than the whole cache of a replica"
    if not broken:
        return "requests come faster than they are answered"
    return f"{', '.join(broken)} (a token every {_time(trial.tpot_mean_s)} on average)"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def _no_fleet(candidate: Candidate, runs: Runs) -> Rejection:
    n = MOST_OVER_FLUID
    idle = runs.trial(runs.capacity_per_s() * 0.05 * n, n)
    reason = f"no number of replicas keeps the promises: even nearly idle, {_broken(idle)}"
    if idle.holds:
        reason = (
            "a promise lies so near to what an idle replica takes that no reasonable number of "
            "replicas is sure to keep it"
        )
    return Rejection(
        candidate=candidate,
        constraint="slo",
        reason=reason,
        relaxation="loosen that promise, shorten the prompts or read them in smaller chunks",
    )


def _cold_start(setup: ServingSetup, weights_bytes: float) -> Estimate | None:
    start = StartConditions(
        weight_bytes=weights_bytes * setup.layout.n_accelerators,
        n_layers=setup.model.main.n_layers,
        tp=setup.layout.tp,
    )
    return start_estimates(startup_phases(start, start_constants())).get("total")

"""One training run on one kind of server: how many, how laid out, how long, how sure."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import ceil, exp, inf, log
from statistics import NormalDist
from typing import NamedTuple

from gpuplan.candidates.prune import rejection
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import Candidate, Rejection, RunNeeds, RunShape, RunSteps
from gpuplan.domain.plan.sizing import SizedJob, TrainingFigures
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.requests.requests import TrainingRun
from gpuplan.domain.training.run import RunForecast
from gpuplan.performance.training.step import network_bytes_per_step
from gpuplan.studies.market.ranks import RentedServer
from gpuplan.studies.power.node_draw import slowdown_of
from gpuplan.studies.power.training import training_power
from gpuplan.studies.sizing.task import estimate_of
from gpuplan.studies.sizing.training.counts import WORTH_FRAC, CountSearch, RunCount
from gpuplan.studies.sizing.training.job import Job
from gpuplan.studies.sizing.training.remarks import run_remarks
from gpuplan.studies.training.interruptions import Interruptions
from gpuplan.studies.training.predict import predict_run, trained_params
from gpuplan.studies.training.search import LayoutSearch
from gpuplan.studies.training.shapes import ServerKind, Trial
from gpuplan.units import DAY, GIB

Z_80 = NormalDist().inv_cdf(0.9)  # an 80 % range ends so many deviations from its middle
# Assumption: without a deadline nobody waits longer, as long as more accelerators still pay.
PATIENCE_S = 90 * DAY
WORTH_WAITING_FRAC = 0.98  # a larger run that is cheaper by less than this is not sought
LIKELY_FIT_FRAC = 0.5  # what fits more likely than not is worth a try
EFFICIENT_FRAC = 0.85  # of what no layout can undercut: nearer to it there is little to save


class RunOdds(NamedTuple):
    """Probabilities that are asked for: of fitting, and of fitting and ending in time."""

    fits_frac: float
    whole_frac: float


class RunSizer:
    """Sizes one run on one kind of server."""

    def __init__(
        self,
        job: Job,
        server: RentedServer,
        card: Accelerator,
        *,
        given: Range | None,
        odds: RunOdds,
    ) -> None:
        self.job, self.server, self.card, self.given = job, server, card, given
        kind = ServerKind(
            accelerator=card, n_per_node=server.node.n_accelerators, fabric=server.node.fabric
        )
        self.search, self.odds = LayoutSearch(job.task, kind, sure=odds.fits_frac), odds
        adapter = self.search.base.setup.adapter
        n_params, work = trained_params(job.task.model, adapter), job.work
        self.stops = Interruptions(work.checkpoint, n_params, work.accelerator_mtbf_s)

    @cached_property
    def peak_flop_per_s(self) -> float:
        """Dense peak in the precision of the run."""
        return self.card.peak_flop_per_s[self.job.task.precision]

    @cached_property
    def least_accelerator_s(self) -> float:
        """Accelerator-seconds of the whole run that no layout can undercut."""
        if self.given is not None:
            return self.job.flop / (self.peak_flop_per_s * self.given.mid)
        return self.job.n_samples * self.search.ideal_s_per_sample()

    def sized(self, candidate: Candidate) -> tuple[SizedJob, ...] | Rejection:
        """The fewest that end in time, or the cheapest where there is no deadline; then cheaper."""
        counts = self._counts()
        deadline_s = self.job.work.deadline_s
        found = self._unhurried(counts) if deadline_s is None else counts.fewest(deadline_s)
        if found is None or found.wall_s == inf:
            return self._rejected(candidate, counts)
        runs = (found, *self._cheaper(counts, found))
        return tuple(self._job(candidate, counts, each) for each in runs)

    def _cheaper(self, counts: CountSearch, found: RunCount) -> Iterator[RunCount]:
        """Twice as many where their memory saves recomputation or splits, and so money.

        Beside the fewest, not instead of them: a limit of accelerators or power may bar the larger.
        """
        while self._is_short_of_memory(found):
            twice = counts.at(2 * found.n)
            if twice is None or twice.cost > WORTH_WAITING_FRAC * found.cost:
                return
            found = twice
            yield found

    def _is_short_of_memory(self, found: RunCount) -> bool:
        """Whether the layout pays for a lack of memory, and more could save something."""
        layout = found.trial.layout
        is_lean = layout.tp * layout.pp == 1 and found.trial.setup.execution.recompute == "none"
        return not is_lean and self.least_accelerator_s < EFFICIENT_FRAC * found.cost

    def _counts(self) -> CountSearch:
        n_most, node = self.server.n_most, self.server.node.n_accelerators
        limit_s = self.job.work.deadline_s or PATIENCE_S
        return CountSearch(
            self.search,
            self.wall_s,
            n_least=self.least_accelerator_s / limit_s if self.job.work.deadline_s else 1.0,
            n_most=None if n_most is None else n_most * node,
        )

    def _unhurried(self, counts: CountSearch) -> RunCount | None:
        """The cheapest number, and as many as still pay where that takes very long.

        Servers that are there cost what they draw: all of them, as far as more are faster; so too
        where the least time is sought.
        """
        if (self.server.is_own or self.server.is_all_used) and self.server.n_most:
            found = counts.at(counts.n_most) or counts.first()
        else:
            found = counts.first()
            if found is not None and found.wall_s <= PATIENCE_S:
                return found
            found = (found and counts.fewest(PATIENCE_S)) or counts.fastest
        while found is not None and self._is_past_knee(counts, found):
            found = counts.at(counts.half(found))
        return found

    def run_s(self, n: int, trial: Trial) -> Range:
        """The run without stops: by the utilization that was given, or by the step."""
        if self.given is not None:
            work_s = self.job.flop / (n * self.peak_flop_per_s)
            mfu = self.given
            return Range(low=work_s / mfu.high, mid=work_s / mfu.mid, high=work_s / mfu.low)
        mid = self.job.n_samples * trial.s_per_sample
        (low, high), slow = self._spread, self._slowdown
        return Range(low=mid * low * slow.low, mid=mid * slow.mid, high=mid * high * slow.high)

    @cached_property
    def _slowdown(self) -> Range:
        """Time under the power cap of one's own servers over time without; 1 where there is none.

        Infinite where the cap is so low that nothing is known of it.
        """
        cap_w, first = self.server.cap_w, self.search.tried()
        if cap_w is None:
            return exactly(1.0)
        hfu = self.forecast(first).forecast.step.hfu_frac
        power = training_power(self.card, self.peak_flop_per_s * hfu, n_accelerators=1)
        drawn = power.get("power_w")
        if drawn is None:
            return exactly(1.0)
        slower = slowdown_of(self.card, drawn.value, is_saturated=True)(cap_w)
        return exactly(inf) if slower is None else slower

    @cached_property
    def _spread(self) -> tuple[float, float]:
        """Ends of the 80 % range over the middle: the same for every layout of one software."""
        first = self.search.best(self.search.server.n_per_node) or self.search.tried()
        step = self.forecast(first).forecast.step_s
        return step.low / step.value, step.high / step.value

    def forecast(self, trial: Trial) -> RunForecast:
        """The run as `predict-training` says."""
        run = TrainingRun(
            columns=tuple(self.search.columns(trial).items()), n_tokens=self.job.n_tokens
        )
        return predict_run(run, model=self.job.task.model)

    def wall(self, n: int, trial: Trial) -> Range:
        """The run with its stops; the slow end has slow writes too."""
        work, useful = self.run_s(n, trial), self.stops.useful_frac(n)
        return Range(
            low=over(work.low, useful.high),
            mid=over(work.mid, useful.mid),
            high=over(work.high, useful.low),
        )

    def wall_s(self, n: int, trial: Trial) -> float:
        """What the run takes at most, with the probability that is asked for.

        A layout that may not fit has to be faster, so that both hold together.
        """
        found = self.wall(n, trial)
        if self.job.work.deadline_s is None:
            return found.mid
        in_time = self.odds.whole_frac / self.search.fit_probability_frac(trial)
        if in_time >= 1.0 or found.high == inf or found.low <= 0:
            return inf
        z = NormalDist().inv_cdf(in_time)
        return found.mid * exp(z * log(found.high / found.low) / (2 * Z_80))

    def _job(self, candidate: Candidate, counts: CountSearch, found: RunCount) -> SizedJob:
        n, trial = found.n, found.trial
        step = (predicted := self.forecast(trial)).forecast.step
        tier = "given" if self.given is not None else predicted.forecast.step_s.tier
        work_s, lost = self.run_s(n, trial), self.stops.goodput(n)
        reached = self.given.mid if self.given is not None else step.hfu_frac
        power = training_power(self.card, self.peak_flop_per_s * reached, n_accelerators=n)
        return SizedJob(
            candidate=self.candidate(candidate, trial),
            method="given" if tier == "given" else "analytic",
            n_accelerators=n,
            n_accelerators_per_node=min(n, self.server.node.n_accelerators),
            n_slow_end=self._slow_end(counts, found),
            flop=self.job.flop,
            accelerator_s=estimate_of(work_s.times(n), tier),
            wall_s=estimate_of(self.wall(n, trial), tier),
            goodput=lost,
            power_w=self._capped_w(power.get("power_w"), n),
            training=TrainingFigures(
                mfu_frac=self.given.mid if self.given is not None else step.mfu_frac,
                fit_probability_frac=predicted.fit.fit_probability_frac,
                is_past_knee=self._is_past_knee(counts, found),
                needs=self._needs(predicted, trial, work_s.mid),
            ),
            remarks=(
                *run_remarks(self, predicted, lost),
                *self._cap_line(),
                *self._knee(counts, found),
            ),
        )

    def _needs(self, predicted: RunForecast, trial: Trial, work_s: float) -> RunNeeds:
        """Memory of the fullest accelerator, and what a server sends to others."""
        base, memory = self.search.base, predicted.fit.job.accelerator.memory
        sent_bytes = network_bytes_per_step(
            base.model, base.accelerator, trial.setup, layout=trial.layout, fabric=base.fabric
        )
        n_steps = self.job.n_samples / trial.n_samples
        n_each = min(trial.layout.n_accelerators, base.fabric.n_node)
        return RunNeeds(
            peak_bytes=predicted.fit.peak.value,
            usable_bytes=memory.visible_bytes,
            sent_bytes_per_s=n_each * sent_bytes * n_steps / work_s,
            nics_bytes_per_s=n_each * base.fabric.outside.bytes_per_s,
        )

    def _capped_w(self, power: Estimate | None, n: int) -> Estimate | None:
        """What the run draws, at most what the cap allows."""
        if power is None or self.server.cap_w is None:
            return power
        most = n * self.server.cap_w
        low, mid, high = (min(each, most) for each in (power.low, power.value, power.high))
        return replace(power, low=low, value=mid, high=high)

    def candidate(self, base: Candidate, trial: Trial) -> Candidate:
        """The run as a candidate: its whole layout, and the servers that it stands on."""
        layout, columns = trial.layout, self.search.columns(trial)
        return Candidate(
            workload=base.workload,
            accelerator=base.accelerator,
            layout=ServingLayout(
                tp=layout.tp, pp=layout.pp, dp=layout.dp, ep=layout.ep, cp=layout.cp
            ),
            precision=base.precision,
            run=RunShape(
                sharding=columns["sharding"],
                framework=columns["framework"],
                n_per_node=self.server.node.n_accelerators,
                steps=RunSteps(
                    vp=layout.n_virtual,
                    micro_batch=trial.setup.micro_batch,
                    global_batch=trial.n_samples,
                    recompute=columns["recompute"],
                    fabric=self.server.node.fabric,
                ),
            ),
        )

    def _slow_end(self, counts: CountSearch, found: RunCount) -> int | None:
        """As many as end in time even at the slow end, in the same layout; None: no deadline."""
        deadline_s = self.job.work.deadline_s
        if deadline_s is None:
            return None
        n, trial = found.n, found.trial
        for _ in range(8):
            late = self.wall(n, trial).high / deadline_s
            if late <= 1.0 + 1e-9:
                return n
            more = counts.at(counts.block(trial, n * min(late, 8.0)), trial)
            if more is None:
                return None
            n, trial = more.n, more.trial
        return None

    def _cap_line(self) -> Iterator[str]:
        slow = self._slowdown
        if self.server.cap_w is not None:
            yield (
                f"capped at {self.server.cap_w:.0f} W per accelerator: steps take {slow.mid:.2f} "
                f"times as long ({slow.low:.2f} … {slow.high:.2f}); predict-training knows no cap"
            )

    def _efficiency_frac(self, counts: CountSearch, found: RunCount) -> float:
        """Predicted speed of each accelerator over its speed on the fewest that hold the run."""
        first = counts.first()
        alone_s = (
            first.trial.s_per_sample * first.n if first else found.trial.s_per_sample * found.n
        )
        return alone_s / (found.trial.s_per_sample * found.n)

    def _is_past_knee(self, counts: CountSearch, found: RunCount) -> bool:
        """By the last doubling; and by all of them, also where a given MFU hides the network."""
        is_late = counts.is_past_knee(found)
        return is_late or self._efficiency_frac(counts, found) < WORTH_FRAC

    def _knee(self, counts: CountSearch, found: RunCount) -> Iterator[str]:
        if counts.is_past_knee(found):
            gain = (counts.speedup_of_last_doubling(found) or 1.0) - 1.0
            why = f"the last doubling brings {gain:.0%} of what it could"
        elif (efficiency := self._efficiency_frac(counts, found)) < WORTH_FRAC:
            why = f"each accelerator does {efficiency:.0%} of what it does on the fewest"
        else:
            return
        yield f"past the knee: {why}, and only the deadline needs it"

    def _rejected(self, candidate: Candidate, counts: CountSearch) -> Rejection:
        fastest, deadline_s = counts.fastest, self.job.work.deadline_s
        if fastest is None or deadline_s is None:
            n = self.server.node.n_accelerators * min(64, self.server.n_most or 64)
            gib = self.search.missing_bytes(n) / GIB
            if gib <= 0 and deadline_s is not None:
                return self._too_few(candidate, n, deadline_s)
            return self._unfit(candidate, n, gib)
        days = fastest.wall_s / DAY
        took = f"{days:,.1f} days" if days < inf else "no end: failures leave no progress"
        reason = (
            f"{fastest.n} of them take {took}, and more are no faster: {deadline_s / DAY:,.1f} "
            f"days are given ({self.server.node.fabric or 'usual network'})"
        )
        fix = f"give {ceil(days) if days < inf else 'more'} days, a larger batch or faster links"
        return rejection(candidate, "deadline", reason, fix)

    def unfit_within(self, candidate: Candidate, n_allowed: int | None) -> Rejection | None:
        """Why as many as are allowed do not hold the run surely enough; None: they do."""
        node = self.server.node.n_accelerators
        if n_allowed is None or n_allowed < node:
            return None
        n = n_allowed - n_allowed % node
        gib = self.search.missing_bytes(n) / GIB
        return self._unfit(candidate, n, gib) if 0 < gib < inf else None  # inf: none divides

    def _unfit(self, candidate: Candidate, n: int, gib: float) -> Rejection:
        """It does not fit so many, or not surely enough."""
        odds, name = self.search.likeliest_fit_frac(n), self.card.name
        room = f"by {gib:,.1f} GiB" if gib < inf else "in any layout that divides"
        reason = f"does not fit {name} {room}, sharded over {n} of them"
        fix = "shorter sequences, a smaller batch, QLoRA, or accelerators with more memory"
        if odds >= LIKELY_FIT_FRAC:
            requested = f"{self.odds.fits_frac:.0%} is asked for"
            reason = f"fits {n} x {candidate.accelerator} with {odds:.0%} probability, {requested}"
            fix = f"try it (policy.min_probability_frac: {int(100 * odds) / 100:g}), {fix}"
        return rejection(candidate, "memory", reason, fix)

    def _too_few(self, candidate: Candidate, n: int, deadline_s: float) -> Rejection:
        """It fits, but as many as can be joined are too slow whatever their layout."""
        days = self.least_accelerator_s / n / DAY
        reason = (
            f"{n} of them, as many as can be joined ({self.server.node.fabric or 'one server'}), "
            f"take {days:,.1f} days at the least: {deadline_s / DAY:,.1f} days are given"
        )
        fix = f"give {ceil(days)} days or more, or servers whose network is stated"
        return rejection(candidate, "deadline", reason, fix)


def over(seconds: float, useful_frac: float) -> float:
    """Time on the clock; infinite where nothing of it is useful."""
    return seconds / useful_frac if useful_frac > 0 else inf

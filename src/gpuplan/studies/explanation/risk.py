"""What the odds of a plan are, what other odds cost, and what a measurement is worth."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.candidates.need import need_in_proportion
from gpuplan.candidates.risk import (
    DEMAND_SPREAD_FRAC,
    N_SAMPLES,
    FleetRisk,
    RiskSamples,
    risk_samples,
)
from gpuplan.domain.columns import floats
from gpuplan.domain.plan.comparison import PlanRisk, RiskFleet
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.studies.day_replay.joint_odds import SureFleet, met_together
from gpuplan.studies.explanation.rows import PricedRow, row_choice, rows_alone
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.language import row_sizes
from gpuplan.studies.sizing.likely import is_likely, likely
from gpuplan.studies.sizing.task import SizingTask

GAMBLE_FRAC, SAFE_FRAC = 0.5, 0.95
CAUSES = {"n_deviations": "model error", "demand_ratio": "demand", "luck_frac": "failures"}
SAME_FRAC = 0.01  # of the price: no saving worth other odds
N_ROWS = 1  # rows that are sized anew for another probability, and the chosen one
N_SPEEDS = 9  # even quantiles of the model's error that a measurement may show


class ServiceRisk:
    """The odds of one service, with everything that it could be served by."""

    def __init__(
        self, inputs: PlanInputs, group: SolvedGroup, sizing: Sizing, rows: Sequence[PricedRow]
    ) -> None:
        self.inputs, self.group, self.sizing = inputs, group, sizing
        self.rows = [each for each in rows if each.row.evidence.is_eligible and each.sized]
        self.chosen = next((each for each in self.rows if each.row.is_chosen), None)
        self.samples = risk_samples(inputs.around.options.seed)

    @property
    def model(self) -> str:
        """The model that is served; empty where the workload names none."""
        work = self.inputs.scenario.workload(self.sizing.workload)
        return work.model.name or "" if work is not None and work.model is not None else ""

    @property
    def peak(self) -> float:
        """Load at the peak of the first period."""
        return self.sizing.demand.peak_of(0, 0)

    @property
    def fleet(self) -> SureFleet | None:
        """What the service is met by, and its load; None where nothing is chosen for it alone."""
        sized, load = (self.chosen.sized, self.peak) if self.chosen else self._stream
        return None if sized is None else SureFleet(self.model, sized, load)

    @property
    def _stream(self) -> tuple[Sized | None, float]:
        """The fleet of documents beside services, and its load in the hours that it works."""
        choice, name = self.group.choice, self.sizing.workload
        option = next((o for o in choice.selection.chosen if o.workload == name), None)
        if option is None:
            return None, 0.0
        hour_s = choice.table.problem.horizon.hour_s
        busy_s = float(hour_s[option.need[0, option.first_period] > 0].sum())
        return choice.table.row_of(option).sized, self.peak * float(hour_s.sum()) / max(busy_s, 1.0)

    def fleet_at(self, level: float) -> RiskFleet:
        """The cheapest of the compared fleets, resized for another probability."""
        none = RiskFleet(
            level_frac=level,
            fleet="",
            usd_per_month=None,
            extra_usd_per_month=None,
            probability_frac=None,
        )
        rows = sorted(self.rows, key=lambda each: self._guess(each, level))[:N_ROWS]
        if self.chosen is not None and self.chosen not in rows:
            rows.append(self.chosen)
        found = [fleet for row in rows if (fleet := self._row_at(row, level)) is not None]
        best = min(found, key=lambda each: each.usd_per_month or 0.0, default=none)
        # Of fleets at one price of nodes the plan is the surest: what its power costs is no odds.
        saved = -(best.extra_usd_per_month or 0.0)
        own = self.own(self.chosen, level) if self.chosen else best
        is_own = level <= (own.probability_frac or 0.0) and saved < SAME_FRAC * (
            own.usd_per_month or 0.0
        )
        return own if is_own else best

    def _row_at(self, row: PricedRow, level: float) -> RiskFleet | None:
        """The row at another probability, its layout chosen anew; None: it does not reach it."""
        sized = self._resized(row.sized, level) if row.sized else []
        if not sized or self.chosen is None:
            return None
        mine = replace(self.sizing, sized=tuple(sized), compared=())
        sizings = [mine if each is self.sizing else each for each in self.group.sizings]
        alone = rows_alone(self.inputs, self.group._replace(sizings=sizings), mine)
        choice = row_choice(self.inputs, alone, alone.table.problem.options)
        if choice is None:
            return None
        at = choice.table.row_of(choice.selection.chosen[0]).sized
        return RiskFleet(
            level_frac=level,
            fleet=_fleet_text(at),
            usd_per_month=choice.usd_per_month,
            extra_usd_per_month=choice.usd_per_month - self.chosen.usd,
            probability_frac=self._probability(at),
        )

    def _guess(self, row: PricedRow, level: float) -> float:
        """About what the row costs at this level: replicas in proportion."""
        sized = row.sized
        if sized is None or sized.carried is None:
            return float("inf")
        n = FleetRisk(sized.carried, self.samples).fewest(self.peak, level, most=10**5)
        return float("inf") if n is None else row.usd * n / max(1, sized.n_replicas)

    def _task(self, level: float) -> SizingTask | None:
        task = self.inputs.task(self.sizing)
        return None if task is None else task.at_probability(level)

    def _resized(self, sized: Sized, level: float) -> list[Sized]:
        """Fleets of the same accelerator and precision for another probability."""
        task = self._task(level)
        if task is None:
            return []
        if sized.method == "simulated":
            return row_sizes(task, sized.candidate)
        found = likely(task, _at_predicted_speed(task, sized))
        return [found] if found is not None and is_likely(task, found) else []

    def _probability(self, sized: Sized) -> float | None:
        """In the period in which it is least: what a fleet costs, it costs over all of them."""
        if sized.carried is None:
            return None
        risk, demand = FleetRisk(sized.carried, self.samples), self.sizing.demand
        serving = sized.need.n_replicas[0].max(axis=1).tolist()
        return min(
            risk.probability(n + sized.reserve.n_spare, demand.peak_of(0, period))
            for period, n in enumerate(serving)
        )

    def own(self, chosen: PricedRow, level: float | None = None) -> RiskFleet:
        """The plan itself, beside what other odds cost; its own odds, where they are no better."""
        odds = self._probability(chosen.sized) if chosen.sized else None
        return RiskFleet(
            level_frac=min(x for x in (level, odds, 1.0) if x is not None),
            fleet=_fleet_text(chosen.sized) if chosen.sized else "",
            usd_per_month=chosen.usd,
            extra_usd_per_month=0.0,
            probability_frac=odds,
        )

    def measured_usd(self) -> float | None:
        """USD a month on average if the speed of the chosen fleet were known before it is bought.

        For each speed that may show: as many replicas as demand and failures then ask for, or the
        next row, whichever is cheaper. None where no level is asked for.
        """
        level = self.inputs.around.options.min_probability_frac
        sized = self.chosen.sized if self.chosen else None
        if level is None or self.chosen is None or sized is None or sized.carried is None:
            return None
        other = min((each.usd for each in self.rows if each is not self.chosen), default=np.inf)
        each_usd = self.chosen.usd / max(1, sized.n_replicas)
        speeds = np.quantile(self.samples.n_deviations, (np.arange(N_SPEEDS) + 0.5) / N_SPEEDS)
        costs = []
        for z in speeds:
            known = self.samples._replace(
                n_deviations=floats(np.full(len(self.samples.luck_frac), z))
            )
            n = FleetRisk(sized.carried, known).fewest(self.peak, level, most=10**4)
            n_least = 1 + sized.reserve.n_spare
            usd = np.inf if n is None else max(n, n_least) * each_usd
            costs.append(min(usd, other))
        return None if not np.isfinite(costs).all() else float(np.mean(costs))


def _at_predicted_speed(task: SizingTask, sized: Sized) -> Sized:
    """The fleet without what the plan's own probability added to it."""
    if sized.carried is None or sized.method != "analytic":
        return sized
    rate = float(np.interp(0.0, sized.carried.n_deviations, sized.carried.load_per_s))
    return sized if rate <= 0 else replace(sized, need=need_in_proportion(task.demand, rate))


def plan_risk(inputs: PlanInputs, services: Sequence[ServiceRisk]) -> PlanRisk | None:
    """The odds of all services together; None where nothing is sampled."""
    mine = [each for each in services if each.chosen is not None]
    if inputs.request.n_samples == 0 or not mine:
        return None
    level, samples = inputs.around.options.all_probability_frac, mine[0].samples
    whole = _together(services, samples)
    now = sum(each.chosen.usd for each in mine if each.chosen)
    # Beside other workloads the price of one service is not that of the plan.
    is_alone = len(mine) == len(inputs.scenario.workloads) == 1
    is_shown = is_alone and not inputs.request.basis.is_brief
    fleets = tuple(_fleets(mine, level)) if is_shown else ()
    known = [each.measured_usd() for each in mine]
    # Who measures may still buy what was planned: knowing is never worth less than nothing.
    saved = None if None in known else max(0.0, now - sum(usd for usd in known if usd is not None))
    return PlanRisk(
        level_frac=level,
        probability_frac=whole,
        by_cause={what: _together(services, samples.only(cause)) for cause, what in CAUSES.items()},
        fleets=fleets,
        measurement_usd_per_month=saved,
        lines=tuple(_lines(whole, level, saved, n_services=len(services))),
    )


def _together(services: Sequence[ServiceRisk], samples: RiskSamples) -> float:
    """Share of the samples in which every service meets its SLOs."""
    return met_together([each.fleet for each in services if each.fleet], samples)


def _fleets(services: Sequence[ServiceRisk], level: float | None) -> Iterator[RiskFleet]:
    [only] = services
    chosen = only.chosen
    if chosen is None or chosen.sized is None or chosen.sized.carried is None:
        return  # a count or capacity that was given has no odds of its own
    levels = [(GAMBLE_FRAC, False), (level or GAMBLE_FRAC, True), (SAFE_FRAC, False)]
    for at, is_plan in sorted(levels):
        if is_plan:
            yield only.own(chosen, at)
        elif at != level:
            yield only.fleet_at(at)


def _lines(
    whole: float, level: float | None, saved: float | None, *, n_services: int
) -> Iterator[str]:
    if level is not None and whole < level:
        why = "no fleet meets all SLOs with" if n_services == 1 else "not all meet their SLOs with"
        yield f"{why} the {level:.0%} probability asked for; this plan: {whole:.0%}"
    if saved is not None and saved > 0:
        yield (
            f"measuring one replica first is worth ${saved:,.0f}/month on average: its speed is "
            "what is least known"
        )
    yield (
        f"{N_SAMPLES:,} samples: the model's error as measurements outside its fit show it, demand "
        f"within {DEMAND_SPREAD_FRAC:.0%} of the forecast four times of five, failures as in "
        "large clusters"
    )


def _fleet_text(sized: Sized) -> str:
    candidate, n = sized.candidate, sized.n_replicas
    replicas = f"{n} replica{'s' if n != 1 else ''}"
    kind, layout = candidate.accelerator, candidate.layout.name
    return f"{sized.n_accelerators} x {kind} ({replicas}, {layout}, {candidate.precision})"

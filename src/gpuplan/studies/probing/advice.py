"""Which short runs to make before a plan is bought: every row weighed, the best few proposed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf, log
from typing import NamedTuple

from gpuplan.calibration.inference.own import Conditions, conditions_of, usual_runs
from gpuplan.calibration.inference.site import own_factor
from gpuplan.candidates.risk import risk_samples
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.probe import (
    OtherChoice,
    Probe,
    ProbeAdvice,
    ProbeCommand,
    ProbeCost,
    ProbeRequest,
)
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, one
from gpuplan.studies.explanation.risk import SAFE_FRAC
from gpuplan.studies.explanation.rows import UNMEASURED, PricedRow
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.probing.runs import (
    LoadPoint,
    calibrate_command,
    concurrency_of,
    load_points,
    serving_commands,
)
from gpuplan.studies.probing.value import FleetChoice, Informed, Market, changed, informed, spread
from gpuplan.studies.rendering.deployed import engine_of
from gpuplan.studies.sizing.language import row_sizes
from gpuplan.studies.sizing.task import SizingTask
from gpuplan.units import HOUR, HOURS_PER_MONTH

N_POINTS = (1, 3)  # rows that a run may bring
USUAL_LEVEL_FRAC = 0.8
STEP_METRIC = "tpot_mean_ms"  # which shows the time of a step
N_CHANGES = 3


class Measurable(NamedTuple):
    """A fleet that a run could be made of, priced as its accelerator's row is."""

    sized: Sized
    usd_per_accelerator: float  # a month
    n_per_node: int  # replicas on one node
    is_open: bool  # may be chosen without a run
    is_chosen: bool = False

    @property
    def name(self) -> str:
        """Accelerator, layout and precision."""
        candidate = self.sized.candidate
        return f"{candidate.accelerator} {candidate.spread} {candidate.precision}"

    @property
    def fleet(self) -> FleetChoice:
        """What is bought of it."""
        candidate, carried = self.sized.candidate, self.sized.carried
        assert carried is not None
        return FleetChoice(
            name=self.name,
            accelerator=str(candidate.accelerator),
            carried=carried,
            n_replicas=self.sized.n_replicas,
            n_spare=self.sized.reserve.n_spare,
            usd_per_replica=self.usd_per_accelerator * candidate.n_accelerators,
            n_accelerators=candidate.n_accelerators,
            is_open=self.is_open,
        )


class ServiceRows:
    """One service of a plan with every fleet that a run could be made of."""

    def __init__(self, inputs: PlanInputs, sizing: Sizing, rows: Sequence[PricedRow]) -> None:
        self.inputs, self.sizing = inputs, sizing
        self.task = inputs.task(sizing)
        self.rows = list(_measurable(self.task, sizing, rows)) if self.task else []

    @cached_property
    def market(self) -> Market:
        """What is chosen from."""
        options = self.inputs.around.options
        return Market(
            tuple(each.fleet for each in self.rows),
            self.sizing.demand.peak_of(0, 0),
            options.min_probability_frac or USUAL_LEVEL_FRAC,
            risk_samples(options.seed),
        )

    @property
    def plan(self) -> FleetChoice | None:
        """The plan's own fleet; None where it is none that a run could be made of."""
        return next((each.fleet for each in self.rows if each.is_chosen), None)


class WeighedRun(NamedTuple):
    """A run of a fleet, with what it would show and what it costs."""

    service: ServiceRows
    row: Measurable
    points: list[LoadPoint]
    sd_ratio: float  # of the error that is left
    informed: Informed
    cost: ProbeCost

    @property
    def name(self) -> str:
        """What is run, and at how many points of load."""
        n = len(self.points)
        return f"{self.row.name}, {n} point{'s' if n > 1 else ''} of load"


def probe_advice(
    answer: Answer, services: Sequence[ServiceRows], request: ProbeRequest
) -> ProbeAdvice:
    """The runs that are expected to save more than they cost, best first."""
    weighed = [each for service in services for each in weighed_runs(service, request)]
    weighed.sort(key=lambda each: -each.cost.net_usd)
    if not weighed:
        what = "has no fleet whose speed a short run of an engine could show"
        fix = "give a plan with a service of a language model"
        raise one(InputError, answer.name, "plan", what, fix)
    best = proposed(weighed, request)
    plans = [service.plan for service in services if service.plan is not None]
    return ProbeAdvice(
        name=answer.name,
        fleet="; ".join(_words(each, each.n_replicas) for each in plans),
        usd_per_month=answer.plan.cost_usd_per_month.value if answer.plan else 0.0,
        n_months=request.n_months,
        probes=tuple(_probe(each, place) for place, each in enumerate(best, start=1)),
        considered=tuple((each.name, each.cost) for each in weighed),
        lines=tuple(_lines(weighed, best, request)),
        after=_after(best or weighed[:1]),
        assumptions=_assumptions(request),
    )


def weighed_runs(service: ServiceRows, request: ProbeRequest) -> Iterator[WeighedRun]:
    """Every fleet of a service, one replica measured at one point of load or at three."""
    task = service.task
    for row in service.rows if task else ():
        assert task is not None
        candidate = row.sized.candidate
        n_most = candidate.settings.max_sequences if candidate.settings else 1
        for n_points in N_POINTS:
            users = concurrency_of(_n_users(row.sized), n_most, n_points=n_points)
            points = load_points(task, candidate, users)
            ratio = min(1.0, _left_ratio(task, row.sized, points))
            found = informed(service.market, row.fleet, sd_ratio=ratio)
            cost = _cost(row, points, value_usd=found.value_usd * request.n_months)
            yield WeighedRun(service, row, points, ratio, found, cost)


def _left_ratio(task: SizingTask, sized: Sized, points: Sequence[LoadPoint]) -> float:
    """What runs at these points are expected to leave of the range of a step at the peak."""
    setup = task.evaluator.setup(sized.candidate)

    def at(n_users: float) -> Conditions:
        return conditions_of(replace(setup, load=replace(setup.load, n_sequences=n_users)))

    runs = usual_runs(STEP_METRIC, [at(point.n_users) for point in points])
    rule = task.evaluator.calibration.ranges
    return own_factor(rule, runs, STEP_METRIC, at=at(_n_users(sized)))


def proposed(weighed: Sequence[WeighedRun], request: ProbeRequest) -> list[WeighedRun]:
    """One run of each fleet, best first, as long as it pays and the budget lasts."""
    found: dict[str, WeighedRun] = {}
    left = inf if request.budget_usd is None else request.budget_usd
    for each in weighed:
        pays = each.cost.net_usd > 0 and each.cost.usd <= left
        if pays and each.row.name not in found and len(found) < request.n_most:
            found[each.row.name] = each
            left -= each.cost.usd
    return list(found.values())


def _measurable(
    task: SizingTask, sizing: Sizing, rows: Sequence[PricedRow]
) -> Iterator[Measurable]:
    """Simulated fleets of an engine: the rows, then other layouts of what may be chosen.

    A narrower precision than asked for is a question of quality: no benchmark of speed answers it.
    """
    known = []
    for each in rows:
        sized, evidence = each.sized, each.row.evidence
        if sized is None or each.usd == inf or not _is_run(sized):
            continue
        if evidence.is_eligible or evidence.note == UNMEASURED:
            usd = each.usd / max(1, each.row.n_accelerators)
            is_open, is_chosen = evidence.is_eligible, each.row.is_chosen
            known.append(Measurable(sized, usd, _n_per_node(each), is_open, is_chosen))
    yield from known
    names = {each.name for each in known}
    chosen = [each.sized.candidate for each in known if each.is_chosen]
    safe = task.at_probability(SAFE_FRAC)
    layouts = [sized for candidate in chosen for sized in row_sizes(safe, candidate)]
    for sized in (*sizing.sized, *layouts):
        same = [row for row in known if row.is_open and _is_same(row.sized, sized)]
        other = same[0]._replace(sized=sized, is_chosen=False) if same and _is_run(sized) else None
        if other is not None and other.name not in names:
            names.add(other.name)
            yield other


def _is_run(sized: Sized) -> bool:
    return sized.carried is not None and sized.candidate.engine is not None


def _is_same(one: Sized, other: Sized) -> bool:
    mine, its = one.candidate, other.candidate
    return (mine.accelerator, mine.precision) == (its.accelerator, its.precision)


def _n_per_node(each: PricedRow) -> int:
    if each.choice is None:
        return 1
    return max(1, each.choice.table.row_of(each.choice.selection.chosen[0]).n_per_node)


def _words(fleet: FleetChoice, n_replicas: int) -> str:
    replicas = f"{n_replicas} replica{'s' if n_replicas != 1 else ''}"
    return f"{n_replicas * fleet.n_accelerators} x {fleet.name} ({replicas})"


def _n_users(sized: Sized) -> float:
    """Requests in flight on one replica at the peak."""
    return sized.little.n_in_flight / max(1, sized.n_serving) if sized.little else 1.0


def _cost(row: Measurable, points: Sequence[LoadPoint], *, value_usd: float) -> ProbeCost:
    """Time and money of a run: the start of the engine, then every point, on a whole node."""
    sized = row.sized
    start_s = sized.cold_start_s.value if sized.cold_start_s else 0.0
    duration_s = start_s + sum(point.duration_s for point in points)
    n_paid = row.n_per_node * sized.candidate.n_accelerators
    usd = duration_s / HOUR * n_paid * row.usd_per_accelerator / HOURS_PER_MONTH
    return ProbeCost(duration_s=duration_s, usd=usd, value_usd=value_usd)


def _task(each: WeighedRun) -> SizingTask:
    assert each.service.task is not None
    return each.service.task


def _probe(each: WeighedRun, place: int) -> Probe:
    task, candidate = _task(each), each.row.sized.candidate
    served = engine_of(task, candidate, None)
    step = task.evaluator.ranged(candidate).step_time()
    half = log(step.high / step.value)
    return Probe(
        workload=task.workload.name,
        subject=f"{candidate.n_accelerators} x {each.row.name}, {served.engine.name} "
        f"{served.engine.version}".strip(),
        concurrency=tuple(point.n_users for point in each.points),
        cost=each.cost,
        range_before=spread(half),
        range_after=spread(half, each.sd_ratio),
        changes=tuple(_changes(each)),
        commands=serving_commands(task, candidate, served, each.points, name=f"probe-{place}"),
    )


def _changes(each: WeighedRun) -> Iterator[OtherChoice]:
    plan = each.service.plan
    if plan is None:
        return
    for bought, chance in changed((plan.name, plan.n_replicas), each.informed.choices)[:N_CHANGES]:
        usd = bought.n_replicas * bought.fleet.usd_per_replica
        yield OtherChoice(
            fleet=_words(bought.fleet, bought.n_replicas),
            probability_frac=chance,
            extra_usd_per_month=usd - plan.n_replicas * plan.usd_per_replica,
        )


def _lines(
    weighed: Sequence[WeighedRun], best: Sequence[WeighedRun], request: ProbeRequest
) -> Iterator[str]:
    if not best:
        first = weighed[0]
        yield (
            f"no run pays: the best ({first.name}) is worth ${first.cost.value_usd:,.0f} over "
            f"{request.n_months:g} months and costs ${first.cost.usd:,.0f}"
        )
    yield f"{len(weighed)} runs were weighed"


def _after(runs: Sequence[WeighedRun]) -> tuple[ProbeCommand, ...]:
    task, candidate = _task(runs[0]), runs[0].row.sized.candidate
    again = "gpuplan replan plan.yaml --calibration site.json --out new.yaml"
    return (
        ProbeCommand(what="bring the results back", command=calibrate_command(task, candidate)),
        ProbeCommand(what="plan again and see the difference", command=again),
    )


def _assumptions(request: ProbeRequest) -> tuple[Assumption, ...]:
    return (
        Assumption(
            what="time that the decision stands",
            value=f"{request.n_months:g} months",
            why="what a better choice saves counts so long",
            change="--months",
        ),
        Assumption(
            what="price of a missing replica",
            value="1 / (1 - probability asked for) replicas",
            why="the price at which the planned number of replicas is the cheapest on average",
            change="--confidence of the plan",
        ),
    )

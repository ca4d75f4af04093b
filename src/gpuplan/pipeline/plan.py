"""The planner, in order: scenario, prices, fleets, choice, replay, reasons, answer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.offers import read_offers
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.plan.answer import Answer, Explanation, PlannedLoad, PlanProvenance
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.selection import Conflict, Selection, SelectionProblem
from gpuplan.domain.plan.sizing import LittleClosure, PriceOf, Sizing, SizingOptions
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Training
from gpuplan.inputs.traces.read import read_trace
from gpuplan.selection.choose import select
from gpuplan.studies.day_replay.replay import replayed, secured
from gpuplan.studies.explanation.conflict import conflict_lines, hopeless_lines
from gpuplan.studies.explanation.explain import Story, explanation_of
from gpuplan.studies.explanation.rejected import rejected_of
from gpuplan.studies.market.offers import Market, market_of, no_price
from gpuplan.studies.naming import with_overlays
from gpuplan.studies.planning.chosen import Choice, Part, weak_prices
from gpuplan.studies.planning.jobs import as_fleets, market_for_runs
from gpuplan.studies.planning.joint import both_solved
from gpuplan.studies.planning.options import Rows, rows_of
from gpuplan.studies.planning.scenario import Asked, asked_scenario
from gpuplan.studies.planning.shared import taken_lines, within_what_is_left
from gpuplan.studies.planning.whole import whole_plan, whole_proof
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.studies.sizing.workload import size_workload
from gpuplan.studies.uncertainty.robust import robust_sizings

MOST_ROUNDS = 8
FULL_REQUESTS = 20_000_000  # of a replay in full: memory ends there
REGRET_FRAC = 0.9  # Assumption: of samples that a plan of least regret is enough for
ALSO_SIZED_FRAC = 0.3  # fleets whose least cost is within this of the best are sized too


class Setting(NamedTuple):
    """Everything that is known before anything is chosen."""

    request: PlanRequest
    asked: Asked
    catalog: Catalog
    market: Market
    around: SizingContext

    @property
    def scenario(self) -> Scenario:
        """What is to be planned."""
        return self.asked.scenario


def plan(request: PlanRequest) -> Answer:
    """The plan that was asked for, with its reasons; without one, what stands in the way."""
    setting = setting_of(request)
    scenario = setting.scenario
    sizings = [size_workload(work, scenario, setting.around) for work in scenario.workloads]
    lost = [sizing for sizing in sizings if not sizing.sized and not sizing.jobs]
    if lost:
        return _nothing(setting, sizings, hopeless_lines(lost))
    level = _robust_frac(scenario, request)
    sizings = robust_sizings(sizings, replace(request, robust_frac=level))
    found = _all_solved(setting, _groups(scenario, sizings))
    if isinstance(found, tuple):
        return _nothing(setting, sizings, found)
    return _answer(setting, found)


def _robust_frac(scenario: Scenario, request: PlanRequest) -> float | None:
    """Share of samples to be enough for: as asked; where regret is to be least, most of them."""
    is_regretted = scenario.objective == "regret" and request.n_samples > 0
    return REGRET_FRAC if request.robust_frac is None and is_regretted else request.robust_frac


def setting_of(request: PlanRequest) -> Setting:
    """Scenario, catalog and prices."""
    asked = asked_scenario(request)
    catalog = with_overlays(read_catalog(), request.overlays)
    offers = read_offers(request.store)
    market = market_of(asked.scenario, catalog, offers=offers, today=request.today)
    if not market.ways:
        raise no_price(market)
    around = SizingContext(
        catalog=catalog,
        price=_price_of(market, asked.scenario),
        options=_options(request),
        store=request.store,
        read_trace=cache(lambda path: read_trace(path).requests),
    )
    return Setting(request, asked, catalog, market, around)


def _price_of(market: Market, scenario: Scenario) -> PriceOf:
    """Least price of so many replicas; parts of accelerators by the part, where others share."""
    if len(scenario.workloads) == 1:
        return market.price_usd_per_h

    def price(candidate: Candidate, n_replicas: int) -> float | None:
        share = candidate.share
        if share is None:
            return market.price_usd_per_h(candidate, n_replicas)
        whole = market.price_usd_per_h(candidate, 1)
        return None if whole is None else whole * n_replicas / share.n_per_accelerator

    return price


def _options(request: PlanRequest) -> SizingOptions:
    options = SizingOptions(seed=request.seed, slack_frac=ALSO_SIZED_FRAC)
    return replace(options, n_replayed_whole=FULL_REQUESTS) if request.is_replay_full else options


def _groups(scenario: Scenario, sizings: Sequence[Sizing]) -> list[tuple[list[Sizing], bool]]:
    """Services share their fleet; runs with an end are bought apart."""
    works = {work.name: work.work for work in scenario.workloads}
    runs = [s for s in sizings if isinstance(works[s.workload], Training)]
    services = [s for s in sizings if not isinstance(works[s.workload], Training)]
    groups = [(services, False), (as_fleets(runs), True)]
    return [group for group in groups if group[0]]


def _all_solved(
    setting: Setting, groups: Sequence[tuple[list[Sizing], bool]]
) -> list[Part] | tuple[str, ...]:
    """Every group, within limits that both share."""

    def solve(
        sizings: Sequence[Sizing], is_jobs: bool, before: Sequence[Choice]
    ) -> Part | tuple[str, ...]:
        return _solved(setting, sizings, is_jobs=is_jobs, before=before)

    if len(groups) > 1:
        (services, _), (runs, _) = groups
        return both_solved(services, runs, solve)
    [(sizings, is_jobs)] = groups
    found = solve(sizings, is_jobs, ())
    return [found] if isinstance(found, Part) else found


def _solved(
    setting: Setting, sizings: Sequence[Sizing], *, is_jobs: bool, before: Sequence[Choice] = ()
) -> Part | tuple[str, ...]:
    """Choose, replay, and choose again with more replicas where a promise broke."""
    market = market_for_runs(setting.market, setting.catalog) if is_jobs else setting.market
    for n_rounds in range(1, MOST_ROUNDS + 1):
        rows = rows_of(setting.scenario, setting.catalog, sizings, market=market, is_jobs=is_jobs)
        waiting = {work.workload for work in rows.problem.deferrable if work.options}
        if {*rows.problem.workloads, *waiting} != {sizing.workload for sizing in sizings}:
            return hopeless_lines(sizings)
        problem = within_what_is_left(rows, before, is_jobs=is_jobs)
        if setting.request.is_check:
            problem = replace(rows.problem, limits=())
        found = _selected(problem, rows)
        if isinstance(found, Conflict):
            return (*conflict_lines(found, problem), *taken_lines(rows, before))
        seen = replayed(setting.scenario, setting.around, sizings, chosen=found)
        sizings = seen.sizings
        if not seen.is_tightened:
            rows, sizings = secured(
                setting.scenario, setting.around, rows, sizings=sizings, chosen=found
            )
            choice = Choice(rows=rows, selection=found, is_jobs=is_jobs)
            return Part(choice=choice, sizings=sizings, n_rounds=n_rounds, replays=seen.replays)
    return (f"a promise still breaks after {MOST_ROUNDS} rounds of adding replicas",)


def _selected(problem: SelectionProblem, rows: Rows) -> Selection | Conflict:
    lost = [name for name in rows.problem.workloads if name not in problem.workloads]
    if lost:
        what = f"{', '.join(lost)}: what others leave of the budget pays for none of its fleets"
        return Conflict(limits=(), alone=(), together=None, without_limits=what)
    return select(problem)


def _answer(setting: Setting, parts: Sequence[Part]) -> Answer:
    sizings = [sizing for part in parts for sizing in part.sizings]
    chosen = whole_plan(setting.scenario, parts)
    weak = [note for part in parts for note in weak_prices(part.choice)]
    told = explanation_of(
        Story(setting.scenario, setting.market, parts, chosen, setting.request, setting.around)
    )
    if told.uncertainty is not None:
        chosen = replace(chosen, cost_usd_per_month=told.uncertainty.cost_usd_per_month)
    return replace(
        _bare(setting, sizings),
        feasible=True,
        plan=chosen,
        alternatives=told.alternatives,
        explanation=told.explanation,
        uncertainty=told.uncertainty,
        charts=told.charts,
        assumptions=(*_assumptions(setting, sizings), *weak, *told.assumptions),
        proof=whole_proof(parts),
    )


def _nothing(setting: Setting, sizings: Sequence[Sizing], lines: tuple[str, ...]) -> Answer:
    return replace(_bare(setting, sizings), explanation=Explanation(conflicts=lines))


def _bare(setting: Setting, sizings: Sequence[Sizing]) -> Answer:
    """What is known without a choice."""
    return Answer(
        name=setting.scenario.name,
        feasible=False,
        plan=None,
        alternatives=(),
        rejected=tuple(r for sizing in sizings for r in rejected_of(sizing, setting.market)),
        assumptions=_assumptions(setting, sizings),
        load=tuple(_load(setting.scenario, sizing) for sizing in sizings),
        explanation=Explanation(),
        uncertainty=None,
        charts=(),
        proof=None,
        provenance=PlanProvenance(
            package_version=_package_version(),
            catalog_sha256=setting.catalog.content_hash,
            scenario_sha256=setting.scenario.sha256,
            seed=setting.request.seed,
            as_of=setting.request.today.isoformat(),
            scenario=setting.asked.tree,
        ),
    )


def _package_version() -> str:
    try:
        return version("gpuplan")
    except PackageNotFoundError:
        return "not installed"  # run from its source tree


def _assumptions(setting: Setting, sizings: Sequence[Sizing]) -> tuple[Assumption, ...]:
    notes = (
        *setting.scenario.assumptions,
        *setting.market.assumptions,
        *(note for sizing in sizings for note in sizing.assumptions),
        *_robust_notes(setting),
    )
    return tuple(dict.fromkeys(notes))


def _robust_notes(setting: Setting) -> tuple[Assumption, ...]:
    level = _robust_frac(setting.scenario, setting.request)
    if level is None or setting.request.robust_frac is not None:
        return ()
    why = "the objective is regret: a fleet on its limit is what is regretted most"
    value = f"every fleet is enough in {level:.0%} of samples"
    return (Assumption(what="robustness", value=value, why=why, change="--robust"),)


def _load(scenario: Scenario, sizing: Sizing) -> PlannedLoad:
    work = scenario.workload(sizing.workload)
    model = work.model.name if work and work.model and work.model.name else ""
    little = sizing.sized[0].little if sizing.sized else None
    peak = sizing.demand.peak_requests_per_s
    return PlannedLoad(
        workload=sizing.workload,
        kind=work.kind if work else "",
        model=model,
        peak_requests_per_s=peak,
        mean_requests_per_s=sizing.demand.mean_requests_per_s,
        residence_s=little.residence_s if little else None,
        n_in_flight=little.residence_s * peak if little and peak else None,
        lines=(*sizing.demand.lines, *_little_lines(little)),
    )


def _little_lines(little: LittleClosure | None) -> tuple[str, ...]:
    """The law, closed by a count that does not use it."""
    if little is None:
        return ()
    return (
        f"Little's law in the run: {little.requests_per_s:.3g} requests/s x "
        f"{little.residence_s:.3g} s = {little.n_in_flight:.3g} in flight; "
        f"counted: {little.n_counted:.3g}",
    )

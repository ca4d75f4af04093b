"""What a plan is made from, in: a request; out: scenario, catalog, market and sizing options."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.offers import read_offers
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import PriceOf, Sizing, SizingOptions
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import Description, PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Training
from gpuplan.errors import InputError, one
from gpuplan.inputs.documents.document import Document, document_from_dict
from gpuplan.inputs.scenario.read import scenario_document, scenario_of, with_changes
from gpuplan.inputs.traces.read import read_trace
from gpuplan.inputs.words.flags import still_assumed, still_described, with_flags
from gpuplan.inputs.words.read import described_scenario
from gpuplan.studies.inference.user_calibration import read_user_calibration
from gpuplan.studies.market.offers import Market, market_of, networks_of, no_price
from gpuplan.studies.market.ranks import RentedServer, market_for_ranks, rented_servers
from gpuplan.studies.naming import (
    lexicon,
    plannable,
    refuse_unknown,
    with_known_places,
    with_overlays,
)
from gpuplan.studies.planning.runs import market_for_jobs
from gpuplan.studies.sizing.task import SizingContext, SizingTask

FILE_ENDINGS = (".yaml", ".yml", ".json")
FULL_REQUESTS = 20_000_000  # of a replay in full: memory ends there
USUAL_PROBABILITY_FRAC = 0.8  # of meeting all SLOs, where nobody asks for another
ALSO_SIZED_FRAC = 0.3  # fleets whose least cost is within this of the best are sized too


class PlanInputs(NamedTuple):
    """Everything that is known before anything is chosen."""

    request: PlanRequest
    scenario: Scenario
    tree: dict[str, Any]  # that the scenario was read from
    catalog: Catalog
    market: Market
    around: SizingContext

    def task(self, sizing: Sizing) -> SizingTask | None:
        """The workload of a sizing, as its sizers are asked; None: not in the scenario."""
        workload = self.scenario.workload(sizing.workload)
        if workload is None:
            return None
        return SizingTask(
            workload=workload, scenario=self.scenario, demand=sizing.demand, context=self.around
        )


def plan_inputs(request: PlanRequest) -> PlanInputs:
    """Scenario, catalog and prices of a request; CatalogError where nothing has a price."""
    scenario, tree = requested_scenario(request)
    catalog = plannable(with_overlays(read_catalog(), request.overlays), scenario)
    offers = read_offers(request.store)
    market = market_of(scenario, catalog, offers=offers, today=request.today)
    if not market.ways:
        raise no_price(market)
    requested = requested_probability(scenario, request)
    options = SizingOptions(
        seed=request.seed,
        is_choice_alone=request.basis.is_choice_alone,
        slack_frac=ALSO_SIZED_FRAC,
        min_probability_frac=_of_each(scenario, requested),
        all_probability_frac=requested,
        is_probability_requested=request.min_probability_frac is not None
        or scenario.policy.resilience.min_probability_frac is not None,
    )
    if request.basis.is_replay_full:
        options = replace(options, n_replayed_whole=FULL_REQUESTS)
    around = SizingContext(
        catalog=catalog,
        price=_price_of(market, scenario),
        networks=networks_of(market),
        options=options,
        store=request.store,
        calibration=_calibration(request),
        read_trace=cache(lambda path: read_trace(path).requests),
        servers=_servers(market, scenario, catalog),
    )
    return PlanInputs(request, scenario, tree, catalog, market, around)


def _calibration(request: PlanRequest) -> InferenceCalibration | None:
    path = request.basis.calibration
    return None if path is None else read_user_calibration(path)


def requested_probability(scenario: Scenario, request: PlanRequest) -> float | None:
    """Of meeting all SLOs: by flag, by the policy, else the usual one; None: nothing is sampled."""
    requested = request.min_probability_frac
    if requested is None:
        requested = scenario.policy.resilience.min_probability_frac
    if request.n_samples == 0:
        if request.min_probability_frac is not None:
            fix = "leave --samples out, or give some"
            raise one(InputError, "plan", "--confidence", "has no samples to be judged by", fix)
        return None
    return USUAL_PROBABILITY_FRAC if requested is None else requested


def _of_each(scenario: Scenario, requested: float | None) -> float | None:
    """The probability of each service that gives all of them the one asked for.

    How far a prediction is off differs from model to model: all are right more seldom than one.
    """
    models = {work.model for work in scenario.workloads if isinstance(work.work, Serving)}
    return None if requested is None else float(requested ** (1 / max(1, len(models))))


def _servers(market: Market, scenario: Scenario, catalog: Catalog) -> tuple[RentedServer, ...]:
    """What training may stand on; nothing is looked up where nothing is trained."""
    if not any(isinstance(work.work, Training) for work in scenario.workloads):
        return ()
    return rented_servers(market_for_ranks(market_for_jobs(market), scenario, catalog))


def _price_of(market: Market, scenario: Scenario) -> PriceOf:
    """Least price of so many replicas; fractional GPUs by the slice, where others share them."""
    if len(scenario.workloads) == 1:
        return market.price_usd_per_h

    def price(candidate: Candidate, n_replicas: int) -> float | None:
        share = candidate.share
        if share is None:
            return market.price_usd_per_h(candidate, n_replicas)
        whole = market.price_usd_per_h(candidate, 1)
        return None if whole is None else whole * n_replicas / share.n_per_accelerator

    return price


def requested_scenario(request: PlanRequest) -> tuple[Scenario, dict[str, Any]]:
    """The scenario of a tree, a file or a line of words, with its tree; flags win, then changes."""
    document, folder, notes = _document(request)
    document = with_changes(document, request.changes)
    scenario = scenario_of(document, folder=folder)
    catalog = with_overlays(read_catalog(), request.overlays)
    refuse_unknown(scenario, document, catalog, request.store)
    scenario = with_known_places(scenario)
    notes = still_assumed(notes, document)
    return replace(scenario, assumptions=(*notes, *scenario.assumptions)), document.data


def _document(request: PlanRequest) -> tuple[Document, Path | None, tuple[Assumption, ...]]:
    """What was asked for, the folder of its files, and what a line of words left to defaults."""
    if request.tree is not None:
        return document_from_dict(request.tree, name=request.target), None, ()
    if is_file_name(request.target):
        path = Path(request.target)
        return with_flags(scenario_document(path), request.given), path.parent, ()
    document, described = described_scenario(request.target, request.given, lexicon(request.store))
    return document, None, described.assumptions


def description_of(request: PlanRequest) -> Description | None:
    """What a description in words was understood as; None where a file or a tree is asked for."""
    if request.tree is not None or is_file_name(request.target):
        return None
    document, found = described_scenario(request.target, request.given, lexicon(request.store))
    return still_described(found, with_changes(document, request.changes))


def is_file_name(target: str) -> bool:
    """Whether the words name a file: by its ending, or because it is there."""
    is_short = "\n" not in target and len(target) < 1000
    return target.lower().endswith(FILE_ENDINGS) or (is_short and Path(target).is_file())

"""Simulate: names and a stream of requests -> a fleet -> times of every request and their sum."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.candidates.propose import shared_device, shares_of
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.demand.lengths import within_context
from gpuplan.demand.statistics import summary
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.hardware.catalog import AcceleratorChoice, Catalog
from gpuplan.domain.inference.performance import ServingLoad, ServingSetup
from gpuplan.domain.inference.serving import EngineSettings, LoraUse, ServingLayout
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import (
    LoadRequest,
    PredictRequest,
    ReplicaSpan,
)
from gpuplan.domain.simulation.engine import EngineLimits, Fleet, StepTimes
from gpuplan.domain.simulation.outcome import Outcome, SloTargets
from gpuplan.domain.simulation.simulation import (
    EngineRequest,
    PreparedFleet,
    ReplicaRequest,
    SimulateRequest,
    Simulation,
)
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.errors import InputError, one
from gpuplan.execution.cases import OnProgress
from gpuplan.simulation.serving.gaps import gaps_of
from gpuplan.simulation.serving.statistics import flow_of
from gpuplan.simulation.serving.stream import can_stream, in_blocks
from gpuplan.simulation.serving.text import shares_text, with_lookups, without_cache
from gpuplan.studies.inference.admission import SGLANG, assumed_admission
from gpuplan.studies.inference.closed_loop import closed_outcome
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.deployment import EvaluatedDeployment, evaluated
from gpuplan.studies.naming import model_named, with_overlays
from gpuplan.studies.replay.closed_loop import ended_together, first_of
from gpuplan.studies.replay.judge import (
    check_request,
    has_own_steps,
    judged,
    unused_accelerators,
    with_steps_read,
)
from gpuplan.studies.replay.marks import one_priority, with_adapters
from gpuplan.studies.replay.power import by_priority, power_over_time
from gpuplan.studies.replay.routed import is_knowing, routed_outcome, unknowing
from gpuplan.studies.replay.sizes import smallest_holding


def simulate(
    model: str,
    on: str,
    requests: Requests | LoadSource,
    request: SimulateRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> Simulation:
    """Requests replayed against a fleet: every request's times and what they say.

    Requests come from `read_trace(path).requests` or from `drawn_load(DrawnLoad(…))`; same input,
    same answer.
    """
    query = request or SimulateRequest()
    if isinstance(requests, LoadSource):
        ready = prepared(model, on, requests.requests, query, overlays=overlays, store=store)
        return simulate_load(ready, requests, query)
    ready = prepared(model, on, requests, query, overlays=overlays, store=store)
    return replayed(ready, requests, query)


def prepared(
    model: str,
    on: str,
    requests: Requests,
    request: SimulateRequest,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> PreparedFleet:
    """The fleet that was named, with the engine that its memory and the load's lengths give."""
    check_request(request)
    request = with_steps_read(request)
    if len(requests) == 0:
        raise one(InputError, "simulate", "trace", "holds no request", "give at least one")
    catalog = with_overlays(read_catalog(), overlays)
    replica = _scheduler(request).replica or ReplicaRequest()
    choice = share_of(find_accelerator(on, catalog), catalog, replica.share)
    predicted = _predicted(request, replica, requests)
    setup, assumed = setup_of(model_named(model, store), choice, predicted)
    assumed += unused_accelerators(choice, setup.layout)
    settings = _settings(setup.settings, _scheduler(request))
    load = _with_cached(setup.load, replica.cached_input_frac)
    drafts = _scheduler(request).drafts
    setup = replace(setup, settings=settings, drafts=drafts, load=load)
    fleet, assumed_fleet = fleet_of(setup, requests, request)
    assumptions = (*setup.model.assumptions, *choice.assumptions, *assumed, *assumed_fleet)
    return PreparedFleet(setup=setup, fleet=fleet, assumptions=assumptions)


def _predicted(
    request: SimulateRequest, replica: ReplicaRequest, requests: Requests
) -> PredictRequest:
    """The same deployment as predictions are asked for it."""
    span = replica.span
    return PredictRequest(
        tp=replica.tp or request.tp,
        pp=replica.pp,
        dp=replica.dp,
        ep=replica.ep,
        span=ReplicaSpan(
            cp=span.cp,
            # Of a disaggregated replica KV caches alone travel between servers.
            network_bytes_per_s=None if span.n_prefill else span.network_bytes_per_s,
        ),
        n_replicas=request.n_replicas,
        precision=request.precision,
        cache_precision=request.cache_precision,
        engine=request.engine,
        engine_version=request.engine_version,
        load=_mean_load(requests, replica.adapters),
    )


def share_of(choice: AcceleratorChoice, catalog: Catalog, name: str) -> AcceleratorChoice:
    """The accelerator, or the part of it that is named."""
    if not name:
        return choice
    card = choice.accelerator
    shares = shares_of(card, catalog.mig_profiles_of(card.id), 0.0)
    found = {share.name: share for share in shares}
    if name not in found:
        fix = f"use one of: {', '.join(found) or 'none'}"
        raise one(InputError, "simulate", "share", f"{card.name} has no {name!r}", fix)
    return replace(choice, accelerator=shared_device(card, found[name]), n_accelerators=1)


def _with_cached(load: ServingLoad, cached_frac: float) -> ServingLoad:
    """Whole prompts, where requests hold only what the prefix cache does not."""
    if not cached_frac:
        return load
    whole = load.input_tokens / (1.0 - cached_frac)
    return replace(load, input_tokens=whole, cached_input_frac=cached_frac)


def replayed(
    ready: PreparedFleet,
    requests: Requests,
    request: SimulateRequest,
    *,
    taken: LoadSource | None = None,
    on_progress: OnProgress | None = None,
) -> Simulation:
    """One run of a fleet that is ready; `on_progress` hears how many requests have been taken."""
    loop, blocks = (None, None) if taken is None else (taken.loop, taken.blocks)
    requests = with_adapters(requests, ready.setup.load.adapters, seed=request.seed)
    if loop is not None and ready.fleet.batching is not None:
        fix = "use --rate or --trace, or --batching continuous"
        raise one(InputError, "simulate", "--users", "with fixed batches", fix)
    # Compilation, or its load from disk, is no part of the run.
    if loop is None:
        routed_outcome(requests.take([0]), ready.fleet)
    else:
        loop = replace(loop, adapter=requests.adapter)
        closed_outcome(first_of(loop), ready.fleet, bin_s=request.bin_s)
        n_loop = None if taken is None else taken.n_loop
        loop = ended_together(
            loop, n_loop, lambda more: closed_outcome(more, ready.fleet, bin_s=request.bin_s)
        )
    start_s = perf_counter()
    if loop is not None:
        outcome = closed_outcome(loop, ready.fleet, bin_s=request.bin_s)
    else:
        outcome = _open_outcome(
            ready.fleet, requests, request, blocks=blocks, on_progress=on_progress
        )
    wall_s = perf_counter() - start_s
    statistics, slo = judged(outcome, request), request.slo or SloTargets()
    is_urgent = ready.fleet.limits.scheduling == "priority"
    return Simulation(
        setup=ready.setup,
        fleet=ready.fleet,
        outcome=replace(outcome, assumptions=ready.assumptions),
        statistics=statistics,
        slo=slo,
        classes=by_priority(outcome, statistics, slo) if is_urgent else (),
        wall_s=wall_s,
        flow=flow_of(outcome),
        # Step times of one's own say nothing of arithmetic and memory traffic.
        power=None if has_own_steps(request) else power_over_time(ready.setup, outcome),
        load=summary(outcome.requests),
    )


def _open_outcome(
    fleet: Fleet,
    requests: Requests,
    request: SimulateRequest,
    *,
    blocks: PrefixBlocks | None,
    on_progress: OnProgress | None,
) -> Outcome:
    """In blocks where somebody wants to hear of progress and a run can be made of blocks."""
    bare = fleet
    if not shares_text(requests, blocks):
        bare = replace(fleet, limits=without_cache(fleet.limits))
    if on_progress is not None and can_stream(bare) and not is_knowing(fleet):
        found = in_blocks(requests, bare, bin_s=request.bin_s, on_progress=on_progress)
        if bare == fleet:
            return found
        if found.totals.n_preemptions == 0:
            return with_lookups(found)
    return routed_outcome(requests, fleet, bin_s=request.bin_s, blocks=blocks)


def simulate_load(
    ready: PreparedFleet,
    taken: LoadSource,
    request: SimulateRequest,
    *,
    on_progress: OnProgress | None = None,
) -> Simulation:
    """A run of a load from anywhere; of a fleet that is overloaded, also what would hold it."""
    ready = replace(ready, assumptions=(*taken.assumptions, *ready.assumptions))
    if taken.source == "scenario":
        # Lengths are drawn: none is longer than what the model reads.
        most = ready.setup.model.max_context_tokens
        taken = replace(taken, requests=within_context(taken.requests, most))
    found = replayed(ready, taken.requests, request, taken=taken, on_progress=on_progress)
    if taken.loop is not None or not found.statistics.is_overloaded or ready.fleet.decode:
        return found
    smallest = smallest_holding(
        ready, found.outcome.requests, router=request.router, slo=request.slo, blocks=taken.blocks
    )
    return replace(found, holding=smallest)


def with_gaps(found: Simulation) -> Simulation:
    """The run with percentiles of single gaps between tokens, from a second one by steps."""
    if is_knowing(found.fleet):
        what = f"with router {found.fleet.router}"
        raise one(InputError, "simulate", "--itl", what, "leave it out")
    fleet = found.fleet
    if not found.outcome.totals.n_hit_tokens:
        # A prefix cache in which nothing was found moves no step.
        fleet = replace(fleet, limits=without_cache(fleet.limits))
    return replace(found, gaps=gaps_of(found.outcome.requests, fleet))


def _mean_load(requests: Requests, adapters: LoraUse | None) -> LoadRequest:
    """What labels and memory need to know of the load."""
    span_s = float(requests.arrive_s[-1] - requests.arrive_s[0])
    return LoadRequest(
        regime="poisson",
        input_tokens=max(1, round(float(requests.input_tokens.mean()))),
        output_tokens=max(1, round(float(requests.output_tokens.mean()))),
        requests_per_s=len(requests) / span_s if span_s > 0 else 1.0,
        adapters=adapters,
    )


def _settings(settings: EngineSettings, request: EngineRequest) -> EngineSettings:
    typed = {
        "max_sequences": request.max_sequences,
        "max_batch_tokens": request.max_batch_tokens,
        "block_tokens": request.admission.block_tokens,
        "memory_use_frac": request.memory_use_frac,
    }
    given = {name: value for name, value in typed.items() if value is not None}
    return replace(settings, **given)  # type: ignore[arg-type]


def fleet_of(
    setup: ServingSetup, requests: Requests, request: SimulateRequest
) -> tuple[Fleet, list[Assumption]]:
    """Engines with the iteration time that predictions have, and the cache that memory leaves."""
    deployment = evaluated(
        setup,
        calibration=_calibration(request),
        scheduler=_scheduler(request),
        shared_tokens=float(requests.prefix_tokens.mean()),
        spread=_spread(setup.layout, _scheduler(request).replica),
    )
    _check_room(deployment)
    n_engines = request.n_replicas * deployment.n_engines
    router = request.router if n_engines > 1 else "round_robin"
    fleet = deployment.fleet(request.n_replicas, router=router, seed=request.seed)
    return fleet, [
        *_assumed(fleet.limits, request),
        *_assumed_policies(setup, fleet.limits, requests, request=request),
    ]


def _spread(layout: ServingLayout, replica: ReplicaRequest | None) -> ServingLayout:
    """The layout of a whole replica: one engine, or those that prefill and those that decode."""
    if replica is None or not replica.span.n_prefill:
        return layout
    return replace(
        layout,
        n_prefill=replica.span.n_prefill,
        n_decode=replica.span.n_decode,
        network_bytes_per_s=replica.span.network_bytes_per_s,
    )


def _check_room(deployment: EvaluatedDeployment) -> None:
    """The weights must leave room for a KV cache; InputError where they do not."""
    if deployment.memory.cache_bytes > 0 or deployment.scheduler.n_blocks is not None:
        return
    what = f"the weights leave no room on {deployment.setup.accelerator.name}"
    fix = "ask gpuplan fit what would help"
    raise one(InputError, "simulate", "KV cache", what, fix)


def _calibration(request: SimulateRequest) -> InferenceCalibration:
    """The package's constants, or those refitted with the user's own runs."""
    path = (_scheduler(request).replica or ReplicaRequest()).calibration
    if path is None:
        return inference_calibration()
    from gpuplan.studies.inference.user_calibration import read_user_calibration

    return read_user_calibration(Path(path))


def _assumed_policies(
    setup: ServingSetup, limits: EngineLimits, requests: Requests, *, request: SimulateRequest
) -> list[Assumption]:
    found = []
    if limits.caches_prefixes and _scheduler(request).caches_prefixes is None:
        why = f"{setup.engine.name} has prefix caching on by default"
        if setup.engine.name == SGLANG:
            why = "SGLang's radix tree is on by default"
        found.append(assume("prefix caching", "on", why, "--no-prefix-caching"))
    if limits.drafts is not None:
        found.append(_drafting(limits))
    found += assumed_admission(setup, limits.admission, _scheduler(request))
    found += one_priority(limits, requests)
    if request.n_replicas * setup.n_engines > 1:
        found += unknowing(request.router, requests, "--router")
    n_parts = setup.n_engines
    policy = _scheduler(request).batching
    if policy is not None:
        value = "prompts padded to the longest, all run until the longest answer is written"
        why = "batches that nobody joins or leaves [Yu2022]"
        change = "--batching continuous"
        found.append(assume("fixed batches", value, why, change))
    if n_parts > 1:
        value = f"{n_parts} engines a replica, each with its share of sequences and cache"
        why = (
            "data-parallel ranks step together; stages of drafting engines and of SGLang are apart"
        )
        found.append(assume("layout", value, why, ""))
    if setup.n_stages > 1:
        value = f"{setup.n_stages} batches on the way, one scheduler; each stage takes its share"
        why = "vLLM's queue of batches, without async scheduling"
        found.append(assume("pipeline stages", value, why, "--pp"))
    return found


def _drafting(limits: EngineLimits) -> Assumption:
    value, why = "every step gains the mean", "how a batch fares as a whole"
    change = "--draw-acceptance"
    if limits.draws_acceptance:
        value, why = "drawn for each step", "the sequences of a batch share the draw"
        change = "--mean-acceptance"
    return assume("accepted drafts", value, why, change)


def _assumed(limits: EngineLimits, request: SimulateRequest) -> list[Assumption]:
    scheduler = _scheduler(request)
    given = (scheduler.max_sequences, scheduler.max_batch_tokens, scheduler.n_blocks)
    found = []
    if None in given:
        value = (
            f"{limits.max_sequences} sequences, {limits.max_batch_tokens} tokens an iteration, "
            f"{limits.n_blocks} blocks of {limits.block_tokens} tokens"
        )
        why = "the engine's defaults on this device, and the cache that its memory leaves"
        change = "--max-num-seqs, --max-num-batched-tokens, --kv-blocks"
        found.append(assume("scheduler", value, why, change))
    value, change = f"{limits.start_s * 1e3:.0f} ms", ""
    why = "network, tokenizer and answer outside the engine, from served measurements"
    if has_own_steps(request):
        why, change = "step times are given: the engine alone is simulated", "leave out --step-time"
        found += _beyond(scheduler, limits)
    return [*found, assume("start of a request", value, why, change)]


def _beyond(scheduler: EngineRequest, limits: EngineLimits) -> list[Assumption]:
    """Measured step times that end before the largest iteration does."""
    steps = (scheduler.replica or ReplicaRequest()).steps
    # A formula has two places; the last of a table is a token beyond its largest row.
    if not isinstance(steps, StepTimes) or len(steps.tokens) < 3:
        return []
    known = steps.tokens[-2]
    if known >= limits.max_batch_tokens:
        return []
    value = f"rows end at {known:,.0f} tokens, iterations at {limits.max_batch_tokens:,}"
    why = "beyond them a token takes what it does on average in the table"
    change = "--step-table, --max-num-batched-tokens"
    return [assume("step times", value, why, change)]


def _scheduler(request: SimulateRequest) -> EngineRequest:
    return request.scheduler or EngineRequest()

"""A scenario's workload as requests to replay, with the model and the promises it names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.demand.generate import requests_for
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.demand import Arrivals, LatencyLimit, RequestShape, Slo
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Serving, Workload
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest, SimulateRequest
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import Grouping, requests_of
from gpuplan.errors import InputError, one
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.inference.prefix import fresh_requests
from gpuplan.studies.replay.closed_loop import described_loop
from gpuplan.studies.replay.load import traced_load
from gpuplan.units import HOUR

KEPT_FRAC = {"mean": 0.5, "p50": 0.5, "p95": 0.95, "p99": 0.99}


def scenario_load(
    path: Path, workload: str | None = None, *, duration_s: float | None = None, seed: int = 0
) -> LoadSource:
    """Requests of one workload of the file; InputError where it has none that can be replayed."""
    return described_load(
        read_scenario(path), workload, path=path, duration_s=duration_s, seed=seed
    )


def described_load(
    scenario: Scenario,
    workload: str | None,
    *,
    path: Path,
    duration_s: float | None = None,
    seed: int = 0,
) -> LoadSource:
    """Requests of one workload of a scenario, whose traces lie beside the path."""
    chosen = served_workload(scenario, workload, path.name)
    growth = scenario.growth.per_month_frac.mid
    taken = (
        _batch(chosen.work, duration_s, seed)
        if isinstance(chosen.work, Batch)
        else _serving(chosen, path, duration_s, seed)
    )
    note = () if growth == 0 else (_today(growth),)
    return replace(
        taken,
        source="scenario",
        model=chosen.model.name if chosen.model else None,
        precision=chosen.precisions[0] if chosen.precisions else None,
        cache_precision=chosen.cache_precision,
        assumptions=(*_own(scenario, chosen), *taken.assumptions, *note),
    )


def _own(scenario: Scenario, chosen: Workload) -> list[Assumption]:
    """What was assumed about this workload; places and budgets do not touch a replay."""
    where = f"workloads[{scenario.workloads.index(chosen)}]."
    notes = [a for a in scenario.assumptions if a.change.startswith(where)]
    if len(chosen.precisions) > 1:
        why = f"first of those allowed, before {', '.join(chosen.precisions[1:])}"
        notes.append(assume("precision", chosen.precisions[0], why, "--precision"))
    return notes


def served_workload(scenario: Scenario, name: str | None, file: str) -> Workload:
    """The workload of that name that requests are sent to; InputError where there is none."""
    served = [work for work in scenario.workloads if isinstance(work.work, Serving | Batch)]
    names = ", ".join(work.name for work in served)
    if not served:
        what, fix = "no workload is served by requests", "use gpuplan predict-training"
        raise one(InputError, file, "workloads", what, fix)
    if name is None and len(served) > 1:
        what = f"{len(served)} could be replayed"
        raise one(InputError, file, "workloads", what, f"choose with --workload: {names}")
    found = served[0] if name is None else next((w for w in served if w.name == name), None)
    if found is None:
        raise one(InputError, file, "--workload", f"got {name!r}", f"use one of: {names}")
    return found


def _serving(chosen: Workload, path: Path, duration_s: float | None, seed: int) -> LoadSource:
    assert isinstance(chosen.work, Serving)
    arrivals, slo = chosen.work.arrivals, _slo(chosen.work.slo)
    if arrivals.trace is not None:
        taken = traced_load((path.parent / arrivals.trace).resolve(), seed=seed)
        return replace(taken, slo=slo)
    if arrivals.n_concurrent is not None and arrivals.peak_requests_per_s is None:
        return replace(described_loop(chosen.work, seed=seed), slo=slo)
    seconds, assumed = _duration(arrivals, duration_s)
    shape = chosen.work.request
    drawn = requests_for(arrivals, shape, duration_s=seconds, seed=seed)
    requested = None if shape.max_tokens is None else np.full(len(drawn), shape.max_tokens)
    output, grouping = np.maximum(1, drawn.output_tokens), Grouping(max_tokens=requested)
    bare = requests_of(drawn.arrive_s, drawn.input_tokens, output, grouping=grouping)
    hit = shape.prefix_hit_frac.mid
    return LoadSource(
        requests=fresh_requests(bare, hit),
        source="scenario",
        assumptions=(*assumed, *_cached(hit)),
        slo=slo,
        cached_input_frac=hit,
    )


def _cached(hit_frac: float) -> list[Assumption]:
    """Requests hold what must be read; what is cached is private to each conversation."""
    if not hit_frac:
        return []
    value = f"{hit_frac:.0%} of each prompt, private to its conversation"
    why = "hits save prefill, not memory; requests are shown without what is found"
    change = "workloads[].request.prefix_hit_frac"
    return [assume("prefix cache", value, why, change)]


def with_described(request: SimulateRequest, taken: LoadSource) -> SimulateRequest:
    """What was asked, completed with what the source of the load says."""
    scheduler = request.scheduler or EngineRequest()
    replica = scheduler.replica or ReplicaRequest()
    if taken.cached_input_frac:
        replica = replace(replica, cached_input_frac=taken.cached_input_frac)
    return replace(
        request,
        slo=request.slo or taken.slo,
        precision=request.precision or taken.precision,
        cache_precision=request.cache_precision or taken.cache_precision,
        scheduler=replace(scheduler, replica=replica),
    )


def _batch(work: Batch, duration_s: float | None, seed: int) -> LoadSource:
    """A heap is asked at once over its deadline; a stream at its mean rate."""
    rate = work.docs_per_s if work.docs_per_s is not None else (work.n_docs or 0) / work.deadline_s
    arrivals = Arrivals(peak_requests_per_s=rate, mean_requests_per_s=rate, burstiness_ratio=1.0)
    seconds, assumed = _duration(arrivals, duration_s)
    shape: RequestShape = work.request
    requests = requests_for(arrivals, shape, duration_s=seconds, seed=seed)
    spread = assume(
        shape.media.item,
        f"{rate:g} a second",
        "spread evenly over their deadline",
        "simulate a trace to say when they come",
    )
    return LoadSource(
        requests=requests,
        source="scenario",
        assumptions=(*assumed, spread),
        slo=SloTargets(e2e_s=work.deadline_s),
    )


def _duration(
    arrivals: Arrivals, requested_s: float | None
) -> tuple[float, tuple[Assumption, ...]]:
    if requested_s is not None:
        return requested_s, ()
    hours = len(arrivals.hourly_profile) or 1
    what = "its whole profile" if arrivals.hourly_profile else "its busiest hour"
    notes = assume("duration", f"{hours} h", f"the workload in {what}", "--duration")
    return hours * HOUR, (notes,)


def _today(growth: float) -> Assumption:
    value = "today's load"
    why = f"growth of {growth:.0%} a month is left to plans"
    return assume("growth", value, why, "--growth with --rate")


def _slo(target: Slo) -> SloTargets:
    """Every promised percentile as a limit of each request, and the share that must keep it."""
    strict = _strictest(target.limits)
    named = {limit.metric: limit.limit_s for limit in strict}
    tpot = named.get("tpot", named.get("itl"))
    retained = max((KEPT_FRAC[limit.statistic] for limit in strict), default=0.99)
    return SloTargets(
        ttft_s=named.get("ttft"), tpot_s=tpot, e2e_s=named.get("e2e"), kept_frac=retained
    )


def _strictest(limits: Sequence[LatencyLimit]) -> list[LatencyLimit]:
    """Of each measure the outermost percentile: it is the promise that most requests feel."""
    ranked = sorted(limits, key=lambda limit: KEPT_FRAC[limit.statistic])
    return list({limit.metric: limit for limit in ranked}.values())

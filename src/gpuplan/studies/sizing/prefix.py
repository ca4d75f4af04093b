"""What the share of prompts found in the prefix cache decides: prefill, memory and replicas."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import DemandProfile, PrefixPoint
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.studies.naming import model_named
from gpuplan.studies.sizing.candidates import Bench
from gpuplan.studies.sizing.demand import demand_of
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.trials import Runs
from gpuplan.studies.sizing.workload import Surroundings, serving_load, streams_of

HITS = (0.80, 0.90, 0.95, 0.98)


def prefix_sensitivity(
    workload: Workload,
    scenario: Scenario,
    around: Surroundings,
    candidate: Candidate,
    *,
    hits: Sequence[float] = HITS,
) -> tuple[PrefixPoint, ...]:
    """Prefill that is left, cache that is held, and replicas, at each share of hits.

    Hits save the reading of prompts. What was read before still lies in memory.
    """
    assert isinstance(workload.work, Serving)
    demand = demand_of(workload, scenario, read_trace=around.read_trace)
    return tuple(
        _point(_with_hits(workload, hit), scenario, around, candidate=candidate, demand=demand)
        for hit in hits
    )


def _with_hits(workload: Workload, hit_frac: float) -> Workload:
    assert isinstance(workload.work, Serving)
    shape = replace(workload.work.request, prefix_hit_frac=exactly(hit_frac))
    return replace(workload, work=replace(workload.work, request=shape))


def _point(
    workload: Workload, scenario: Scenario, around: Surroundings, *, candidate: Candidate,
    demand: DemandProfile,
) -> PrefixPoint:  # fmt: skip
    work = workload.work
    assert isinstance(work, Serving)
    hit = work.request.prefix_hit_frac.mid
    rate = demand.peak_of(0, 0)
    n, held = _sized(workload, scenario, around, candidate=candidate, demand=demand)
    return PrefixPoint(
        hit_frac=hit,
        prefill_tokens_per_s=rate * demand.input_tokens * (1.0 - hit),
        cache_tokens=held,
        n_replicas=n,
    )


def _sized(
    workload: Workload, scenario: Scenario, around: Surroundings, *, candidate: Candidate,
    demand: DemandProfile,
) -> tuple[int | None, float]:  # fmt: skip
    """Replicas at the peak, and tokens of context that lie in the cache then."""
    work = workload.work
    assert isinstance(work, Serving)
    assert workload.model is not None
    context = max(1, round(demand.input_tokens + demand.output_tokens))
    bench = Bench(
        model_named(workload.model.name or "", around.store), serving_load(workload, demand),
        around.catalog, context_tokens=context,
    )  # fmt: skip
    streams = streams_of(workload, around)
    assert streams is not None
    runs = Runs(
        bench.prospect(candidate), bench, streams,
        limits=work.slo.limits, options=around.options,
    )  # fmt: skip
    sizer = ServingSizer(
        bench, demand, scenario.policy.resilience, node_size=node_sizes(around.catalog)
    )
    rate = demand.peak_of(0, 0)
    n = sizer.n_at(runs, rate)
    in_flight = rate * bench.floors(candidate).e2e_s
    if n is not None:
        trial = sizer.peak_trial(runs, rate, n)
        in_flight = trial.little.n_counted * rate / trial.little.requests_per_s
    return n, in_flight * (demand.input_tokens + 0.5 * demand.output_tokens)

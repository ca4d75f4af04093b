"""What the prefix cache hit rate decides: prefill, memory and replicas."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import PrefixPoint
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.task import SizingContext, SizingTask, task_of

HITS = (0.80, 0.90, 0.95, 0.98)


def prefix_sensitivity(
    workload: Workload,
    scenario: Scenario,
    context: SizingContext,
    candidate: Candidate,
    *,
    hits: Sequence[float] = HITS,
) -> tuple[PrefixPoint, ...]:
    """Prefill that is left, KV cache that is held, and replicas, at each hit rate.

    Hits save the reading of prompts. What was read before still lies in memory.
    """
    task = task_of(workload, scenario, context)
    return tuple(_point(task, candidate, hit) for hit in hits)


def _point(task: SizingTask, candidate: Candidate, hit_frac: float) -> PrefixPoint:
    assert isinstance(task.workload.work, Serving)
    shape = replace(task.workload.work.request, prefix_hit_frac=exactly(hit_frac))
    work = replace(task.workload.work, request=shape)
    task = replace(task, workload=replace(task.workload, work=work))
    simulator = task.simulator(candidate)
    assert simulator is not None
    sizer, demand, rate = ServingSizer(task, simulator), task.demand, task.peak_per_s
    n = sizer.n_at(rate)
    in_flight = rate * simulator.evaluator.idle_times(candidate).e2e_s
    if n is not None:
        little = sizer.peak_run(rate, n).little
        in_flight = little.n_counted * rate / little.requests_per_s
    return PrefixPoint(
        hit_frac=hit_frac,
        prefill_tokens_per_s=rate * demand.input_tokens * (1.0 - hit_frac),
        cache_tokens=in_flight * (demand.input_tokens + 0.5 * demand.output_tokens),
        n_replicas=n,
    )

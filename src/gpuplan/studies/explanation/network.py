"""What a server of a service sends at the peak, in: the plan and its demand; out: network needs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuplan.domain.model.precision import FORMATS, format_named
from gpuplan.domain.plan.answer import ChosenPlan, PlannedPool
from gpuplan.domain.plan.comparison import NetworkNeed
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.scenario.workload import Workload
from gpuplan.studies.naming import model_named
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs

PROMPT_BYTES = 4.0  # Assumption: a token of a prompt is four characters of text
CHUNK_BYTES = 300.0  # Assumption: a streamed token is one event of JSON


def network_needs(
    inputs: PlanInputs, plan: ChosenPlan, services: Sequence[SolvedGroup]
) -> Iterator[NetworkNeed]:
    """Text of requests and responses, and KV caches that travel from prefill to decode servers."""
    demands = {sizing.workload: sizing.demand for group in services for sizing in group.sizings}
    for pool in plan.pools:
        demand, work = demands.get(pool.workload), inputs.scenario.workload(pool.workload)
        n_nodes = sum(line.n_nodes for line in pool.purchases)
        if demand is None or work is None or not n_nodes or not demand.peak_requests_per_s:
            continue
        size, what = _request_bytes(pool, demand, work, inputs.request.store)
        if size:
            yield NetworkNeed(
                workload=pool.workload,
                what=what,
                sent_bytes_per_s=demand.peak_requests_per_s * size / n_nodes,
                nics_bytes_per_s=_nics(inputs, pool),
            )


def _request_bytes(
    pool: PlannedPool, demand: DemandProfile, work: Workload, store: Path | None
) -> tuple[float, str]:
    """Bytes of one request, and what they are."""
    text = PROMPT_BYTES * demand.input_tokens + CHUNK_BYTES * demand.output_tokens
    what = "requests and streamed responses"
    if not pool.layout.n_prefill or work.model is None or not work.model.name:
        return text, what
    model = model_named(work.model.name, store)
    cache = format_named(work.cache_precision or "") or FORMATS["bf16"]
    return text + demand.input_tokens * model.kv_bytes_per_token(cache), f"{what}, KV transfer"


def _nics(inputs: PlanInputs, pool: PlannedPool) -> float | None:
    """What the replica was planned with, or the slowest of the servers, as their offers state."""
    lines = {(line.offer, line.cloud or None) for line in pool.purchases}
    nodes = (rate.node for rate in inputs.market.ways)
    stated = [node.network_bytes_per_s for node in nodes if (node.name, node.cloud) in lines]
    known = [rate for rate in stated if rate is not None]
    return pool.layout.network_bytes_per_s or min(known, default=None)

"""The storage that one server of a plan needs, in: pools and workloads; out: what it must hold."""

from collections.abc import Iterator
from pathlib import Path

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.plan.answer import ChosenPlan, PlannedPool
from gpuplan.domain.plan.comparison import StorageNeed
from gpuplan.domain.scenario.build import LinkRules
from gpuplan.domain.scenario.workload import Training, Workload
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.system_check.network import LOG_BYTES_PER_S
from gpuplan.studies.system_check.surroundings import state_bytes
from gpuplan.studies.system_check.traffic import params_of
from gpuplan.units import MONTH

TOKEN_BYTES = 4.0  # Assumption: a dataset of tokens is stored as 32-bit numbers
LOGS_S = MONTH  # Assumption: servers keep their logs for a month


def storage_needs(inputs: PlanInputs, plan: ChosenPlan) -> Iterator[StorageNeed]:
    """One line for each pool with accelerators: a server holds its weights and its share."""
    for pool in plan.pools:
        work = inputs.scenario.workload(pool.workload)
        n_nodes = sum(line.n_nodes for line in pool.purchases)
        if work is None or not n_nodes or not pool.n_accelerators:
            continue
        n_each = max(line.n_accelerators_per_node for line in pool.purchases)
        parts = {
            "weights": _weights_bytes(pool, work, inputs.request.store),
            **dict(_shared(work, n_nodes, inputs.request.store)),
            "logs of a month": LOG_BYTES_PER_S * n_each * LOGS_S,
        }
        drives, server = _drives(inputs, pool, n_each)
        yield StorageNeed(
            workload=pool.workload,
            parts_bytes={name: size for name, size in parts.items() if size},
            drives_bytes=drives,
            server=server,
        )


def _weights_bytes(pool: PlannedPool, work: Workload, store: Path | None) -> float:
    form = format_named(pool.precision)
    return (params_of(work, store) or 0.0) * (form.stored_bytes if form else 2.0)


def _shared(work: Workload, n_nodes: int, store: Path | None) -> Iterator[tuple[str, float]]:
    """A server's part of what all of them hold together: the checkpoints and the dataset."""
    run, staging = work.work, work.data_path.staging if work.data_path else None
    dataset_bytes = staging.dataset_bytes if staging else 0.0
    if isinstance(run, Training):
        given = run.checkpoint.state_bytes if run.checkpoint else None
        state = given or state_bytes(work, store) or 0.0
        yield "checkpoints", LinkRules().n_kept_checkpoints * state / n_nodes
        dataset_bytes = dataset_bytes or TOKEN_BYTES * (run.n_tokens or 0.0)
    yield "dataset", dataset_bytes / n_nodes


def _drives(inputs: PlanInputs, pool: PlannedPool, n_each: int) -> tuple[float | None, str]:
    """The smallest drives of servers that are sold with so many; rented ones are not published."""
    sold = [
        (server.host.nvme_bytes, server.name)
        for server in inputs.catalog.servers.values()
        if server.accelerator == pool.accelerator and server.host.nvme_bytes
    ]
    drives, name = min(sold, default=(None, ""))
    servers = {s.name: s.n_accelerators for s in inputs.catalog.servers.values()}
    return (drives * min(1.0, n_each / servers[name]), name) if drives else (None, "")

"""Hosts, software, checkpoints and spares of a workload's nodes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpuplan.catalog.software.rules import check_stack
from gpuplan.design.hosts import (
    allocatable_bytes,
    cores_line,
    host_findings,
    load_line,
    memory_line,
    nic_line,
    nvme_line,
)
from gpuplan.design.rules import assumed
from gpuplan.design.spares import (
    ACCELERATOR_MTBF_S,
    maintenance_findings,
    spare_need,
    sufficient_rate,
)
from gpuplan.design.storage import storage_rates
from gpuplan.domain.provenance import assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Training, Workload
from gpuplan.domain.system.findings import Finding, note, warning
from gpuplan.domain.system.parts import CheckpointRate, HostLine, SpareNeed, Stage
from gpuplan.domain.training.time import CheckpointWrites, FailureRate
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import checkpoint_bytes
from gpuplan.studies.system_check.placement import Placement, Remark
from gpuplan.studies.system_check.traffic import params_of, stored_bytes_per_param
from gpuplan.units import GB, HOUR


def software_findings(
    scenario: Scenario, placement: Placement, *, month: str | None = None
) -> tuple[Finding, ...]:
    """What keeps the installed software from running on these accelerators, and the fix."""
    installed = scenario.site.software if scenario.site else None
    if installed is None or placement.accelerator.is_cpu:
        return ()
    arch = placement.accelerator.instruction_set
    wanted = sorted({work.precisions[0] for work in scenario.workloads if work.precisions})
    found: list[Finding] = []
    for precision in wanted or (None,):
        found += check_stack(replace(installed, arch=arch, precision=precision), month=month)
    return tuple(dict.fromkeys(found))


# --- hosts --------------------------------------------------------------------------------------


def host_lines(
    work: Workload, placement: Placement, stages: tuple[Stage, ...]
) -> tuple[HostLine, ...]:
    """Cores, memory, drives and NICs of one node against what the work needs."""
    wanted = {stage.name: stage for stage in stages}
    server, n, rules = placement.server, placement.n_per_node, placement.build.hosts
    path = work.data_path
    copy = path.copy if path else None
    decode = wanted["CPU decode"].n_wanted if "CPU decode" in wanted else 0.0
    lines = [_cores(placement, decode, work)]
    lines.append(
        memory_line(
            placement.accelerator.memory.marketed_bytes,
            n,
            batch_bytes=copy.n_batch_samples * copy.sample_bytes if copy else 0.0,
            given_bytes=placement.host_memory_bytes,
            rules=rules,
        )
    )
    if path is not None and path.storage is not None and path.storage.kind == "local_nvme":
        dataset = path.staging.dataset_bytes if path.staging else 0.0
        drives = server.host.nvme_bytes if server else None
        lines.append(nvme_line(dataset, n_nodes=placement.n_nodes, given_bytes=drives))
    exchange = wanted.get("network between nodes")
    if exchange is not None:
        why = f"with it work keeps {placement.build.links.enough_frac:.0%} of its speed"
        lines.append(nic_line(exchange.n_wanted, exchange.n_given, why))
    return (*lines, *_load_lines(work, placement))


def host_remarks(
    placement: Placement, lines: tuple[HostLine, ...], name: str | None = None
) -> Iterator[Remark]:
    """The parts of a node that are insufficient, and what their needs rest on."""
    owned, server = placement.owned, placement.server
    known = name or owned.name or (server.name if server else owned.accelerator)
    # Beside accelerators of much memory makers' own servers have less than the rule asks for.
    shipped = ("memory",) if owned.host_memory_bytes is None else ()
    yield from host_findings(lines, known, shipped=shipped)
    names = ["hosts.cores_per_accelerator", "hosts.system_cores", "hosts.memory_ratio"]
    names += ["hosts.load_s"] if any(line.part == "model load" for line in lines) else []
    names += ["hosts.prefetch_batches"] if any("pinned" in line.reason for line in lines) else []
    yield from assumed(placement.build, *names)
    if server is not None and None in (owned.n_host_cores, owned.host_memory_bytes):
        yield assume(
            f"host of {placement.n_per_node} x {placement.accelerator.name}",
            server.name,
            "cores, memory and drives that you did not give are those of this server",
            "owned[].host_cores, owned[].host_memory_gib",
        )


def usable_memory_bytes(placement: Placement) -> float | None:
    """Memory of one node that work can have; None where it is not known."""
    ram = placement.host_memory_bytes
    return None if ram is None else allocatable_bytes(ram)


def _load_lines(work: Workload, placement: Placement) -> Iterator[HostLine]:
    """Weights that a new replica reads, where the work is serving and its model is known."""
    n_params = params_of(work) if isinstance(work.work, Serving) else None
    if n_params is None:
        return
    storage = work.data_path.storage if work.data_path else None
    given = None
    if storage is not None:
        rates, _ = storage_rates(storage, placement.catalog.storage, build=placement.build)
        link = storage.network_bytes_per_s if rates.is_remote else None
        share = placement.build.links.file_link_frac
        given = min(rates.bytes_per_s, share * link) if link else rates.bytes_per_s
    weights = n_params * stored_bytes_per_param(work)
    yield load_line(weights, given, rules=placement.build.hosts)


def _cores(placement: Placement, decode: float, work: Workload) -> HostLine:
    loader = work.data_path.loader if work.data_path else None
    server = placement.server
    given = placement.owned.n_host_cores or (loader.n_cores if loader else None)
    is_advertised = given is None
    if given is None and server is not None:
        given = server.host.n_cores
    rules = placement.build.hosts
    return cores_line(placement.n_per_node, decode, given, is_advertised=is_advertised, rules=rules)


# --- checkpoints and spares ---------------------------------------------------------------------


def checkpoints_of(work: Workload, placement: Placement) -> Iterator[CheckpointRate | Remark]:
    """What each write rate costs a training run; unknown where no failure rate is given."""
    run, build = work.work, placement.build
    if not isinstance(run, Training) or run.checkpoint is None:
        return
    if run.accelerator_mtbf_s is None:
        what = "no failure rate is given: what checkpoints and failures cost is unknown"
        yield note("goodput-unknown", work.name, what, "give training.accelerator_mtbf_h")
        return
    size = run.checkpoint.state_bytes or state_bytes(work)
    if size is None:
        return
    failures = FailureRate(
        mtbf_s=run.accelerator_mtbf_s / placement.n_accelerators,
        restart_s=run.checkpoint.restart_s or 0.0,
    )

    def loss_of(rate: float) -> CheckpointRate:
        found = goodput(failures, CheckpointWrites(size_bytes=size, write_bytes_per_s=rate))
        return CheckpointRate(
            write_bytes_per_s=rate,
            write_s=found.write_s,
            interval_s=found.interval_s or 0.0,
            lost_frac=1.0 - (found.goodput_frac or 0.0),
        )

    worth = build.spares.worth_frac
    enough, table = sufficient_rate(loss_of, worth_frac=worth)
    yield from table
    yield from assumed(build, "spares.worth_frac")
    given = run.checkpoint.write_bytes_per_s
    if given is None:
        return
    lost_frac = loss_of(given.mid).lost_frac
    if lost_frac - enough.lost_frac >= worth:
        what = f"writing at {given.mid / GB:g} GB/s costs {lost_frac:.1%} of the run"
        fix = f"{enough.write_bytes_per_s / GB:g} GB/s costs {enough.lost_frac:.1%}"
        yield warning("checkpoint-rate", work.name, what, fix)


def state_bytes(work: Workload, store: Path | None = None) -> float | None:
    """Bytes of one checkpoint of the workload's model; None without a model."""
    n_params = params_of(work, store)
    return None if n_params is None else checkpoint_bytes(n_params)


def spares_of(scenario: Scenario, placement: Placement) -> Iterator[SpareNeed | Remark]:
    """Spare nodes while others are repaired, and what updates need."""
    runs = [w.work for w in scenario.workloads if isinstance(w.work, Training)]
    given = next((run.accelerator_mtbf_s for run in runs if run.accelerator_mtbf_s), None)
    one_s, n_nodes = given or ACCELERATOR_MTBF_S, placement.owned.n_nodes
    yield spare_need(
        n_nodes, node_mtbf_s=one_s / placement.n_per_node, rules=placement.build.spares
    )
    yield from assumed(placement.build, "spares.repair_days", "spares.kept_frac")
    if given is None:
        yield assume(
            "failures",
            f"one accelerator every {one_s / HOUR:,.0f} h",
            "419 stops of 16,384 accelerators in 54 days of a published run",
            "workloads[].training.accelerator_mtbf_h",
            "Llama3-2024",
        )
    yield from maintenance_findings(n_nodes, scenario.policy.resilience.survive)

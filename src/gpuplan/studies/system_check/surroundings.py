"""Hosts, checkpoints and spares of a system, in: scenario, ground; out: lines, findings."""

from dataclasses import fields
from typing import NamedTuple

from gpuplan.catalog.models import find_model
from gpuplan.catalog.software.rules import check_stack
from gpuplan.design.hosts import (
    allocatable_bytes,
    cores_line,
    host_findings,
    load_line,
    memory_line,
    nic_line,
    nvme_line,
    pinned_bytes,
)
from gpuplan.design.rules import assumed
from gpuplan.design.spares import (
    ACCELERATOR_MTBF_S,
    maintenance_findings,
    spare_need,
    sufficient_rate,
)
from gpuplan.design.storage import storage_rates
from gpuplan.domain.hardware.devices import Server
from gpuplan.domain.hardware.software import SoftwareStack
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Installed
from gpuplan.domain.scenario.workload import Serving, Training, Workload
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import CheckpointRate, HostLine, SpareNeed, Stage
from gpuplan.domain.training.time import CheckpointWrites, FailureRate
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import checkpoint_bytes
from gpuplan.studies.measured.names import named_model
from gpuplan.studies.power.node_draw import server_with
from gpuplan.studies.system_check.data_path import Ground
from gpuplan.units import GB, HOUR

BYTES_16 = 2.0  # of a weight, where no precision is named
INSTALLED = tuple(field.name for field in fields(Installed))


def software_findings(
    scenario: Scenario, ground: Ground, *, month: str | None = None
) -> tuple[Finding, ...]:
    """What keeps the installed software from running on these accelerators, and the fix."""
    installed = scenario.site.software if scenario.site else None
    if installed is None or ground.accelerator.is_cpu:
        return ()
    wanted = sorted({work.precisions[0] for work in scenario.workloads if work.precisions})
    found: list[Finding] = []
    for precision in wanted or (None,):
        stack = SoftwareStack(
            arch=ground.accelerator.instruction_set,
            precision=precision,
            **{name: getattr(installed, name) for name in INSTALLED},
        )
        found += check_stack(stack, month=month)
    return tuple(dict.fromkeys(found))


class Kept(NamedTuple):
    """How a run's state is kept: what each write rate costs, and objections."""

    rates: tuple[CheckpointRate, ...] = ()
    findings: tuple[Finding, ...] = ()
    assumptions: tuple[Assumption, ...] = ()


def host_lines(
    work: Workload, ground: Ground, stages: tuple[Stage, ...]
) -> tuple[tuple[HostLine, ...], tuple[Finding, ...]]:
    """Cores, memory, drives and adapters of one machine against what the work needs."""
    owned, n = ground.owned, ground.owned.n_accelerators_per_node
    server = server_with(ground.catalog, ground.accelerator, n)
    wanted = {stage.name: stage.n_wanted for stage in stages}
    lines = [_cores(ground, server, wanted.get("CPU decode", 0.0), work)]
    path = work.data_path
    copy = path.copy if path else None
    rules = ground.build.hosts
    batch = copy.n_batch_samples * copy.sample_bytes if copy else 0.0
    pinned = pinned_bytes(batch, n, rules=rules)
    ram = owned.host_memory_bytes or (server.host.ram_bytes if server else None)
    device = ground.accelerator.memory.marketed_bytes
    lines.append(memory_line(device, n, pinned_bytes=pinned, given_bytes=ram, rules=rules))
    if path is not None and path.storage is not None and path.storage.kind == "local_nvme":
        dataset = path.staging.dataset_bytes if path.staging else 0.0
        drives = server.host.nvme_bytes if server else None
        lines.append(nvme_line(dataset, 0.0, n_nodes=ground.n_nodes, given_bytes=drives))
    talk = next((stage for stage in stages if stage.name == "network between nodes"), None)
    if talk is not None:
        why = f"with it work keeps {ground.build.links.enough_frac:.0%} of its speed"
        lines.append(nic_line(talk.n_wanted, talk.n_given, why))
    lines += _loads(work, ground)
    made = tuple(lines)
    name = owned.name or (server.name if server else owned.accelerator)
    # Beside accelerators of much memory makers' own machines have less than the rule asks for.
    shipped = ("memory",) if server and owned.host_memory_bytes is None else ()
    return made, host_findings(made, name, shipped=shipped)


def host_notes(ground: Ground, lines: tuple[HostLine, ...]) -> tuple[Assumption, ...]:
    """What the needs of a machine rest on."""
    parts = {line.part for line in lines}
    names = ["hosts.cores_per_accelerator", "hosts.system_cores", "hosts.memory_ratio"]
    names += ["hosts.load_s"] if "model load" in parts else []
    names += ["hosts.prefetch_batches"] if any("pinned" in line.reason for line in lines) else []
    return (*assumed(ground.build, *names), *_machine_notes(ground))


def _machine_notes(ground: Ground) -> tuple[Assumption, ...]:
    """Whose cores and memory are meant where the user described none."""
    owned, n = ground.owned, ground.owned.n_accelerators_per_node
    server = server_with(ground.catalog, ground.accelerator, n)
    is_told = owned.n_host_cores is not None and owned.host_memory_bytes is not None
    if server is None or is_told:
        return ()
    return (
        Assumption(
            what=f"host of {n} x {ground.accelerator.name}",
            value=server.name,
            why="cores, memory and drives that you did not give are those of this machine",
            change="owned[].host_cores, owned[].host_memory_gib",
        ),
    )


def host_memory(ground: Ground) -> float | None:
    """Memory of one machine that work can have; None where it is not known."""
    owned = ground.owned
    server = server_with(ground.catalog, ground.accelerator, owned.n_accelerators_per_node)
    ram = owned.host_memory_bytes or (server.host.ram_bytes if server else None)
    return None if ram is None else allocatable_bytes(ram)


def _loads(work: Workload, ground: Ground) -> list[HostLine]:
    """Weights that a new replica reads, where the work is serving and its model is known."""
    if not isinstance(work.work, Serving) or work.model is None:
        return []
    n_params = work.model.n_params
    if n_params is None and work.model.name is not None:
        n_params = find_model(work.model.name).n_params
    if n_params is None:
        return []
    form = format_named(work.precisions[0]) if work.precisions else None
    weights = n_params * (form.stored_bytes if form else BYTES_16)
    storage = work.data_path.storage if work.data_path else None
    if storage is None:
        return [load_line(weights, None, rules=ground.build.hosts)]
    rates, _ = storage_rates(storage, ground.catalog.storage, build=ground.build)
    link = storage.network_bytes_per_s if rates.is_remote else None
    share = ground.build.links.file_link_frac
    given = min(rates.bytes_per_s, share * link) if link else rates.bytes_per_s
    return [load_line(weights, given, rules=ground.build.hosts)]


def _cores(ground: Ground, server: Server | None, decode: float, work: Workload) -> HostLine:
    n = ground.owned.n_accelerators_per_node
    loader = work.data_path.loader if work.data_path else None
    given = ground.owned.n_host_cores or (loader.n_cores if loader else None)
    if given is not None:
        return cores_line(n, decode, given, is_advertised=False, rules=ground.build.hosts)
    advertised = server.host.n_cores if server else None
    return cores_line(n, decode, advertised, is_advertised=True, rules=ground.build.hosts)


def checkpoints_of(work: Workload, ground: Ground) -> Kept:
    """What each write rate costs a training run; unknown where nobody said how often it fails."""
    run = work.work
    if not isinstance(run, Training) or run.checkpoint is None:
        return Kept()
    if run.accelerator_mtbf_s is None:
        what = "no failure rate is given: what checkpoints and failures cost is unknown"
        fix = "give training.accelerator_mtbf_h"
        return Kept(findings=(_finding("goodput-unknown", work, what, fix, is_grave=False),))
    size = run.checkpoint.state_bytes or _state_bytes(work)
    if size is None:
        return Kept()
    failures = FailureRate(
        mtbf_s=run.accelerator_mtbf_s / ground.n_accelerators,
        restart_s=run.checkpoint.restart_s or 0.0,
    )

    def loss_of(rate: float) -> CheckpointRate:
        found = goodput(failures, CheckpointWrites(size_bytes=size, write_bytes_per_s=rate))
        useful = found.goodput_frac if found.goodput_frac is not None else 0.0
        return CheckpointRate(
            write_bytes_per_s=rate,
            write_s=found.write_s,
            interval_s=found.interval_s or 0.0,
            lost_frac=1.0 - useful,
        )

    worth = ground.build.spares.worth_frac
    enough, table = sufficient_rate(loss_of, worth_frac=worth)
    told = assumed(ground.build, "spares.worth_frac")
    given = run.checkpoint.write_bytes_per_s
    if given is None:
        return Kept(table, (), told)
    now = loss_of(given.mid)
    if now.lost_frac - enough.lost_frac < worth:
        return Kept(table, (), told)
    what = f"writing at {given.mid / GB:g} GB/s costs {now.lost_frac:.1%} of the run"
    fix = f"{enough.write_bytes_per_s / GB:g} GB/s costs {enough.lost_frac:.1%}"
    return Kept(table, (_finding("checkpoint-rate", work, what, fix, is_grave=True),), told)


def _state_bytes(work: Workload) -> float | None:
    if work.model is None:
        return None
    if work.model.n_params is not None:
        return checkpoint_bytes(work.model.n_params)
    return checkpoint_bytes(named_model(work.model.name).n_params) if work.model.name else None


def spares_of(
    scenario: Scenario, ground: Ground
) -> tuple[SpareNeed, tuple[Finding, ...], tuple[Assumption, ...]]:
    """Spare machines while others are repaired, and what updates need."""
    runs = [w.work for w in scenario.workloads if isinstance(w.work, Training)]
    given = next((run.accelerator_mtbf_s for run in runs if run.accelerator_mtbf_s), None)
    one_s = given or ACCELERATOR_MTBF_S
    need = spare_need(
        ground.owned.n_nodes,
        node_mtbf_s=one_s / ground.owned.n_accelerators_per_node,
        rules=ground.build.spares,
    )
    notes = list(assumed(ground.build, "spares.repair_days", "spares.kept_frac"))
    if given is None:
        notes.append(
            Assumption(
                what="failures",
                value=f"one accelerator every {one_s / HOUR:,.0f} h",
                why="419 stops of 16,384 accelerators in 54 days of a published run",
                change="workloads[].training.accelerator_mtbf_h",
                source="Llama3-2024",
            )
        )
    survive = scenario.policy.resilience.survive
    return need, maintenance_findings(ground.owned.n_nodes, survive), tuple(notes)


def _finding(rule: str, work: Workload, what: str, fix: str, *, is_grave: bool) -> Finding:
    return Finding(
        severity="warning" if is_grave else "note",
        rule=rule,
        where=work.name,
        what=what,
        fix=fix,
    )

"""A described system, judged: feed, exchange, place, hosts, spares; and what would balance it."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from gpuplan.catalog.load import read_catalog
from gpuplan.design.data_path import chain
from gpuplan.design.facility import checklist
from gpuplan.design.rules import STORAGE_PRICES, assumed
from gpuplan.design.storage import choose_units, tiers
from gpuplan.design.totals import cache_findings, crowd_findings, place_findings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.build import BusyRules
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.scenario.workload import DataPath, Generic, Staging, Training, Workload
from gpuplan.domain.system.check import SystemCheck, SystemSurroundings, WorkCheck
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.domain.system.parts import (
    BalancedSystem,
    Bottleneck,
    DataDemand,
    FabricPlan,
    Stage,
    TierChoice,
)
from gpuplan.errors import InputError, Problem, ViolationError, one
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.power.node_draw import facility_of
from gpuplan.studies.system_check.balance import Balance, Case, balance_of
from gpuplan.studies.system_check.data_path import Ground, feed_of, ground_of, moved_of
from gpuplan.studies.system_check.exchange import Talk, talk_of
from gpuplan.studies.system_check.network import fabrics_of, network_notes
from gpuplan.studies.system_check.surroundings import (
    checkpoints_of,
    host_lines,
    host_memory,
    host_notes,
    software_findings,
    spares_of,
)
from gpuplan.units import GB

USED_KEYS = ("workloads", "site", "owned", "policy.survive")  # keys that a check reads


class Judged(NamedTuple):
    """One workload with what led to its judgement."""

    check: WorkCheck
    ground: Ground
    talk: Talk
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...]


def check(path: Path, *, changes: Sequence[str] = (), month: str | None = None) -> SystemCheck:
    """The judgement of a scenario's machines with its workloads on them.

    Changes are keys set anew before it is read; a month says whose support has ended.
    """
    scenario = read_scenario(path, changes=changes, option="--what-if")
    return check_scenario(scenario, read_catalog(), month=month)


def check_scenario(
    scenario: Scenario, catalog: Catalog, *, month: str | None = None
) -> SystemCheck:
    """The same for a scenario that is read already."""
    if not scenario.owned:
        fix = "describe the machines under owned:, present or intended"
        raise one(InputError, scenario.name, "owned", "no machines are described", fix)
    judged = [_judge(scenario, work, catalog) for work in scenario.workloads]
    facilities = _facilities(scenario, catalog)
    worst = min(judged, key=lambda one: one.check.busy_frac)
    placed = max((plan.n_racks for plan in facilities), default=0)
    per_rack = worst.ground.build.room.n_nodes_per_rack
    n_racks = placed or ceil(worst.ground.owned.n_nodes / per_rack)
    fabrics, fabric_told = fabrics_of(scenario, worst.ground, worst.talk, n_racks=n_racks)
    lines, host_told = host_lines(
        scenario.workloads[judged.index(worst)], worst.ground, worst.stages
    )
    spares, spare_told, spare_notes = spares_of(scenario, worst.ground)
    findings = (
        *(finding for one in judged for finding in one.findings),
        *(finding for plan in facilities for finding in plan.findings),
        *_totals(scenario, judged, facilities, fabrics),
        *fabric_told,
        *host_told,
        *spare_told,
    )
    case = Case(
        scenario,
        scenario.workloads[judged.index(worst)],
        worst.ground,
        fabrics,
        facilities[0] if facilities else None,
    )
    # Other machines mend no software: only what they could mend calls for them.
    balance = balance_of(case) if any(f.severity == "error" for f in findings) else Balance()
    findings += software_findings(scenario, worst.ground, month=month)
    findings += _price_findings(balance, worst.ground)
    notes = [note for note in scenario.assumptions if note.change.startswith(USED_KEYS)]
    notes += [*spare_notes, *host_notes(worst.ground, lines), *balance.assumptions]
    notes += network_notes(worst.ground, is_rack_given=placed > 0)
    notes += [note for one in judged for note in one.assumptions]
    notes += [note for plan in facilities for note in plan.assumptions]
    return SystemCheck(
        name=scenario.name,
        works=tuple(one.check for one in judged),
        around=SystemSurroundings(
            facilities=facilities,
            fabrics=fabrics,
            hosts=((_machine_name(worst.ground, facilities), lines),),
            spares=(spares,),
            electricity_usd_per_j=scenario.site.electricity_usd_per_j if scenario.site else None,
            checklist=checklist(facilities[0], scenario.site or Site()) if facilities else (),
        ),
        balanced=_alternatives(balance),
        budget_usd=balance.budget_usd,
        findings=tuple(dict.fromkeys(findings)),
        assumptions=tuple(dict.fromkeys(notes)),
    )


def _totals(
    scenario: Scenario,
    judged: list[Judged],
    facilities: tuple[FacilityPlan, ...],
    fabrics: tuple[FabricPlan, ...],
) -> tuple[Finding, ...]:
    """What only shows when all work, machines and switches are added up."""
    runs = [work.work for work in scenario.workloads]
    wanted = sum(run.n_accelerators or 0.0 for run in runs if isinstance(run, Generic))
    found = crowd_findings(wanted, sum(group.n_accelerators for group in scenario.owned))
    if facilities and scenario.site is not None:
        drawn = [plan for plan in fabrics if "cheapest" not in plan.purpose]
        found += place_findings(facilities, drawn, scenario.site)
    for work, known in zip(scenario.workloads, judged, strict=True):
        path, ram = work.data_path, host_memory(known.ground)
        if path is not None and path.staging is not None and ram is not None:
            found += cache_findings(
                path.cache_hit_frac,
                path.staging.dataset_bytes,
                known.ground.n_nodes * ram,
                where=work.name,
            )
    return found


def _price_findings(balance: Balance, ground: Ground) -> tuple[Finding, ...]:
    if balance.budget_usd is not None or not balance.systems:
        return ()
    what = f"no price of {ground.accelerator.name} is known: alternatives are not held to a budget"
    fix = "give prices.hardware"
    return (Finding(severity="note", rule="price-unknown", where="prices", what=what, fix=fix),)


def refuse_system(checked: SystemCheck) -> None:
    """Raise ViolationError where the system is rejected, with every error and its fix."""
    if checked.is_ok:
        return
    errors = [f for f in checked.findings if f.severity == "error"]
    raise ViolationError(checked.name, [Problem(f.where, f.what, f.fix) for f in errors])


def _judge(scenario: Scenario, work: Workload, catalog: Catalog) -> Judged:
    ground = ground_of(scenario, work, catalog)
    fed, talk = feed_of(work, ground), talk_of(scenario, work, ground)
    kept = checkpoints_of(work, ground)
    stages = (*fed.stages, *talk.stages)
    found = chain(stages)
    staging = work.data_path.staging if work.data_path else None
    moved, moved_told = moved_of(staging, scenario) if staging else (None, ())
    made = WorkCheck(
        name=work.name,
        accelerator=ground.accelerator.name,
        n_accelerators=ground.n_accelerators,
        demand=fed.demand,
        bottlenecks=found,
        moved=moved,
        checkpoints=kept.rates,
        storage=_tiers(work.data_path, fed.demand, ground),
    )
    rules = ground.build.busy
    findings = (*(_bottleneck(work, b, rules) for b in found), *fed.findings, *talk.findings)
    findings += _part_findings(scenario, work, ground)
    return Judged(
        made,
        ground,
        talk,
        stages,
        (*findings, *kept.findings),
        (
            *fed.assumptions,
            *talk.assumptions,
            *kept.assumptions,
            *moved_told,
            *_tier_notes(made, ground, staging),
            *(assumed(ground.build, "busy.reject_frac", "busy.warn_frac") if stages else ()),
        ),
    )


def _part_findings(scenario: Scenario, work: Workload, ground: Ground) -> tuple[Finding, ...]:
    """Work is judged on the largest group of machines; where it takes more, that is told."""
    run = work.work
    wanted = run.n_accelerators if isinstance(run, Generic) else None
    if len(scenario.owned) < 2 or (wanted is not None and wanted <= ground.n_accelerators):
        return ()
    what = (
        f"its data is judged on {ground.n_accelerators} accelerators of {ground.owned.accelerator}"
    )
    fix = "describe each group of machines in a file of its own"
    return (Finding(severity="note", rule="largest-group", where=work.name, what=what, fix=fix),)


def _tier_notes(made: WorkCheck, ground: Ground, staging: Staging | None) -> tuple[Assumption, ...]:
    """What the storage that would do rests on."""
    if not made.storage:
        return ()
    held = () if staging is not None else ("links.held_tb",)
    return assumed(ground.build, *STORAGE_PRICES, *held)


def _bottleneck(work: Workload, found: Bottleneck, rules: BusyRules) -> Finding:
    severity: Severity = "note"
    if found.busy_frac < rules.warn_frac:
        severity = "error" if found.busy_frac < rules.reject_frac else "warning"
    stage = found.stage
    what = (
        f"accelerators are busy {found.busy_frac:.0%} of the time: {stage.name} gives "
        f"{_amount(stage.n_given, stage.unit)} of {_amount(stage.n_wanted, stage.unit)}"
    )
    return Finding(
        severity=severity,
        rule="bottleneck",
        where=f"{work.name}: {stage.name}",
        what=what,
        fix=f"{stage.fix}; then {found.busy_after_frac:.0%}",
    )


def _amount(n: float, unit: str) -> str:
    return f"{n / GB:.2f} GB/s" if unit == "bytes/s" else f"{n:,.0f} {unit}"


def _tiers(
    path: DataPath | None, demand: DataDemand | None, ground: Ground
) -> tuple[TierChoice, ...]:
    """Each kind of storage in the size that this demand asks for."""
    if path is None or demand is None or path.sample_bytes is None:
        return ()
    held = path.staging.dataset_bytes if path.staging else ground.build.links.held_bytes
    known = tiers(ground.catalog.storage, ground.build.prices)
    return tuple(choose_units(tier, demand, held_bytes=held) for tier in known)


def _facilities(scenario: Scenario, catalog: Catalog) -> tuple[FacilityPlan, ...]:
    """Racks, power and cooling of each group of machines, where a place is described."""
    site = scenario.site
    if site is None or (site.rack is None and site.power_w is None):
        return ()
    training = any(_is_training(work) for work in scenario.workloads)
    return tuple(
        facility_of(catalog, owned, site, is_training=training, build=scenario.policy.build)
        for owned in scenario.owned
    )


def _is_training(work: Workload) -> bool:
    run = work.work
    return isinstance(run, Training) or (isinstance(run, Generic) and run.is_training)


def _machine_name(ground: Ground, facilities: tuple[FacilityPlan, ...]) -> str:
    if facilities:
        return facilities[0].node.name
    owned = ground.owned
    return owned.name or f"{owned.n_accelerators_per_node} x {ground.accelerator.name}"


def _alternatives(balance: Balance) -> tuple[BalancedSystem, ...]:
    """What the budget buys; and the whole fleet, fed, where it costs more."""
    whole = balance.whole
    if whole is None or whole in balance.systems:
        return balance.systems
    return (*balance.systems, whole)

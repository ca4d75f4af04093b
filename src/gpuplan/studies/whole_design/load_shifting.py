"""Work that may wait, in: groups with their energy; out: when a day of it emits least."""

from dataclasses import replace

from gpuplan.cost.shifting import shifted
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.carbon import DeferrableJob, ShiftPlan
from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Workload
from gpuplan.domain.system.designed import GroupDesign, MachineGroup
from gpuplan.domain.system.findings import Finding
from gpuplan.studies.power.node_draw import node_watts
from gpuplan.studies.whole_design.money import span_of
from gpuplan.units import DAY, HOUR

HOURS = 24
MEANING = "kg CO2e of a day; carbon by hour as you gave it"


def with_shift(
    groups: tuple[GroupDesign, ...], scenario: Scenario, catalog: Catalog, *, plan: ChosenPlan
) -> tuple[GroupDesign, ...]:
    """Each group whose work may wait a day, with the hours in which it would emit least."""
    return tuple(
        _shifted(
            made,
            scenario,
            catalog,
            span_s=span_of(plan, scenario.workload(made.group.workload)),
        )
        for made in groups
    )


def may_wait(work: Workload | None) -> bool:
    """Batches that are due within a day or later, and work that everything else goes before."""
    if work is None:
        return False
    run = work.work
    return (isinstance(run, Batch) and run.deadline_s >= DAY) or work.priority < 0


def _shifted(
    made: GroupDesign, scenario: Scenario, catalog: Catalog, *, span_s: float
) -> GroupDesign:
    if made.carbon is None or not may_wait(scenario.workload(made.group.workload)):
        return made
    hourly = scenario.policy.build.footprint.hourly_kg_per_j
    if not hourly:
        note = Finding(
            severity="note",
            rule="carbon-by-hour",
            where=made.group.workload,
            what="may wait, but how carbon changes over the day is not known",
            fix="give build.footprint.hourly_g_per_kwh",
        )
        return replace(made, findings=(*made.findings, note))
    energy = made.carbon.energy
    plan = shift_of(
        made.group,
        energy.facility_j * DAY / span_s,
        hourly=hourly,
        catalog=catalog,
        pue_ratio=energy.facility_j / energy.machines_j,
    )
    return replace(made, shift=plan)


def shift_of(
    group: MachineGroup,
    day_j: float,
    *,
    hourly: tuple[float, ...],
    catalog: Catalog,
    pue_ratio: float,
) -> ShiftPlan:
    """A day of the group's energy over its hours, at most at what its machines draw at work."""
    power = node_watts(catalog, group.accelerator, group.n_accelerators_per_node)
    # The work of a day always fits into it: that is how many machines there are.
    most = max(group.n_nodes * power.mean_w * pue_ratio, day_j / (HOURS * HOUR))
    job = DeferrableJob(
        name=group.workload, energy_j=day_j, first_hour=0, last_hour=HOURS - 1, max_w=most
    )
    return shifted([job], kg_per_j=hourly, free_w=[most] * HOURS, meaning=MEANING)

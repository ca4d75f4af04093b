"""Energy and carbon of each group of a plan, and the hours in which deferrable work emits least."""

from dataclasses import replace

from gpuplan.cost.carbon import shifted
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.carbon import ShiftPlan
from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Workload
from gpuplan.domain.system.designed import GroupDesign, ServerGroup
from gpuplan.domain.system.findings import note
from gpuplan.errors import PlannerError
from gpuplan.studies.power.carbon import NodeGroup, carbon_of, place_at
from gpuplan.studies.power.node_draw import node_watts
from gpuplan.studies.whole_design.statement import span_of
from gpuplan.units import DAY, HOUR, MONTH

HOURS = 24
MEANING = "kg CO2e of a day; carbon by hour as you gave it"


def with_energy(
    groups: list[GroupDesign], plan: ChosenPlan, scenario: Scenario, catalog: Catalog
) -> tuple[GroupDesign, ...]:
    """Each group with its share of the plan's energy, its emissions, and when it could wait."""
    weights = [_weight_w(made.group) for made in groups]
    if plan.energy_j_per_month is None or not sum(weights):
        return tuple(groups)
    mean_w = plan.energy_j_per_month / MONTH
    found = []
    for made, weight in zip(groups, weights, strict=True):
        work = scenario.workload(made.group.workload)
        span_s, drawn_w = span_of(plan, made.group.workload), mean_w * weight / sum(weights)
        powered = _carbon(made, drawn_w, span_s, scenario=scenario, catalog=catalog)
        found.append(_deferred(powered, work, scenario, catalog=catalog, span_s=span_s))
    return tuple(found)


def _weight_w(group: ServerGroup) -> float:
    return (group.mean_w_per_node or 0.0) * group.n_nodes * group.paid_frac


def _carbon(
    made: GroupDesign, drawn_w: float, span_s: float, *, scenario: Scenario, catalog: Catalog
) -> GroupDesign:
    group = made.group
    site = scenario.site if group.is_own else None
    n_mean = group.n_nodes * group.paid_frac
    if not n_mean:
        return made
    try:
        place = place_at(group.region or None, cloud=group.cloud or None, site=site)
    except PlannerError as failure:
        what = f"region {group.region!r} is not described: {failure}"
        fix = "energy and carbon there stay unknown"
        unknown = note("place-unknown", group.server, what, fix)
        return replace(made, findings=(*made.findings, unknown))
    nodes = NodeGroup(group.accelerator, group.n_accelerators_per_node, n_mean, drawn_w / n_mean)
    account = carbon_of(catalog, [nodes], place=place, seconds=span_s, build=scenario.policy.build)
    return replace(made, carbon=account, assumptions=(*made.assumptions, *account.assumptions))


def is_deferrable(work: Workload | None) -> bool:
    """Whether it is a batch due within a day or later, or work of the lowest priority."""
    if work is None:
        return False
    run = work.work
    return (isinstance(run, Batch) and run.deadline_s >= DAY) or work.priority < 0


def _deferred(
    made: GroupDesign,
    work: Workload | None,
    scenario: Scenario,
    *,
    catalog: Catalog,
    span_s: float,
) -> GroupDesign:
    """The group with the hours in which its deferrable work would emit least."""
    if made.carbon is None or not is_deferrable(work):
        return made
    hourly = scenario.policy.build.footprint.hourly_kg_per_j
    if not hourly:
        what = "is deferrable, but the carbon intensity by hour of the day is not known"
        fix = "give build.footprint.hourly_g_per_kwh"
        unknown = note("carbon-by-hour", made.group.workload, what, fix)
        return replace(made, findings=(*made.findings, unknown))
    energy = made.carbon.energy
    day_j, pue = energy.facility_j * DAY / span_s, energy.facility_j / energy.machines_j
    return replace(made, shift=shift_of(made.group, day_j, pue, hourly=hourly, catalog=catalog))


def shift_of(
    group: ServerGroup,
    day_j: float,
    pue_ratio: float,
    *,
    hourly: tuple[float, ...],
    catalog: Catalog,
) -> ShiftPlan:
    """A day of the group's energy over its hours, at most at what its servers draw at work."""
    power = node_watts(catalog, group.accelerator, group.n_accelerators_per_node)
    # The work of a day always fits into it: that is how many servers there are.
    most = max(group.n_nodes * power.mean_w * pue_ratio, day_j / (HOURS * HOUR))
    return shifted(group.workload, day_j, most, kg_per_j=hourly, meaning=MEANING)

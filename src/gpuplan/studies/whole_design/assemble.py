"""A plan with everything around it, assembled: money, findings, assumptions, checklist.

Energy and carbon of each group of a plan, and the hours in which deferrable work emits least.

Bill of materials and software of a plan, in: groups and pools; out: lines of one object.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from gpuplan.catalog.software.recommend import recommended_stack
from gpuplan.cost.carbon import shifted
from gpuplan.cost.items import carbon_usd_per_month, loan_interest_usd, storage_usd_per_month
from gpuplan.cost.statement import cents, npv_usd
from gpuplan.design.facility import checklist
from gpuplan.design.storage import cheapest
from gpuplan.design.totals import shared_site_findings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.hardware.software import SoftwareLayer
from gpuplan.domain.money.carbon import ShiftPlan
from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedPool
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.scenario.workload import Batch, Workload
from gpuplan.domain.system.designed import (
    DesignedPlan,
    GroupDesign,
    MaterialLine,
    Money,
    OwnInstead,
    PoolCost,
    RentOrOwn,
    ServerGroup,
)
from gpuplan.domain.system.findings import Finding, note
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.errors import InfeasibleError, PlannerError, Problem, ViolationError, one
from gpuplan.studies.power.carbon import NodeGroup, carbon_of, place_at
from gpuplan.studies.power.node_draw import node_watts
from gpuplan.studies.system_check.placement import Remark, assumptions_in, findings_in
from gpuplan.studies.whole_design.rent_or_own import design_market, own_instead, rent_or_own_of
from gpuplan.studies.whole_design.statement import span_of, statement_of_plan
from gpuplan.studies.whole_design.unit_costs import costs_by_team, pool_costs
from gpuplan.units import DAY, HOUR, MONTH

HOURS = 24
MEANING = "kg CO2e of a day; carbon by hour as you gave it"


def chosen_plan(answer: Answer) -> ChosenPlan:
    """The plan that was chosen; InfeasibleError where the file holds none."""
    if answer.plan is None:
        fix = "relax what prevents it: gpuplan explain"
        raise one(InfeasibleError, answer.name, "plan", "holds no fleet to design for", fix)
    return answer.plan


def money_of(
    answer: Answer, groups: tuple[GroupDesign, ...], scenario: Scenario, catalog: Catalog
) -> tuple[Money, tuple[Remark, ...]]:
    """The bill by month, unit and team, and what owning or renting instead would cost."""
    plan = chosen_plan(answer)
    servers = tuple(made.group for made in groups)
    account = statement_of_plan(answer, plan, scenario)
    units = [*pool_costs(answer, plan, scenario)]
    pools = tuple(cost for cost in units if isinstance(cost, PoolCost))
    begins = answer.provenance.as_of
    market = design_market(scenario, catalog, date.fromisoformat(begins))
    instead = [*own_instead(servers, market, catalog)]
    compared = [
        *rent_or_own_of(servers, scenario, catalog, plan=plan, market=market, begins=begins)
    ]
    remarks = [*units, *instead, *compared, *account.assumptions]
    return Money(
        statement=account,
        npv_usd=npv_usd(account),
        plan_total_cents=cents(plan.total_usd),
        pools=pools,
        teams=costs_by_team(pools, plan, scenario),
        own_instead=tuple(found for found in instead if isinstance(found, OwnInstead)),
        rent_or_own=tuple(found for found in compared if isinstance(found, RentOrOwn)),
        beside=tuple(_beside(groups, scenario, plan)),
    ), (*findings_in(remarks), *assumptions_in(remarks))


def designed_plan(
    answer: Answer,
    groups: tuple[GroupDesign, ...],
    scenario: Scenario,
    *,
    money: Money,
    remarks: tuple[Remark, ...],
) -> DesignedPlan:
    """The whole design with every finding and assumption, and a checklist for each site."""
    stated = [
        *(remark for made in groups for remark in (*made.findings, *made.assumptions)),
        *_shared_site(groups, scenario),
        *_shared_pools(chosen_plan(answer)),
        *remarks,
    ]
    facilities = [made.facility for made in groups if made.facility is not None]
    site = scenario.site or Site()
    return DesignedPlan(
        name=answer.name,
        groups=groups,
        money=money,
        findings=findings_in(stated),
        assumptions=assumptions_in(stated),
        checklist=tuple(item for plan in facilities for item in checklist(plan, site)),
    )


def refuse_design(designed: DesignedPlan) -> None:
    """Raise ViolationError where something around the plan is impossible, with its fix."""
    errors = [f for f in designed.findings if f.severity == "error"]
    if errors:
        raise ViolationError(designed.name, [Problem(f.where, f.what, f.fix) for f in errors])


def _shared_site(groups: tuple[GroupDesign, ...], scenario: Scenario) -> tuple[Finding, ...]:
    """Objections to all groups that share one site."""
    facilities = [made.facility for made in groups if made.facility is not None]
    if not facilities or scenario.site is None:
        return ()
    networks = [plan for made in groups for plan in made.networks]
    drawn = [plan for plan in networks if "cheapest" not in plan.purpose]
    return shared_site_findings(facilities, drawn, scenario.site)


def _shared_pools(plan: ChosenPlan) -> Iterator[Finding]:
    """Pools without a purchase of their own: they share servers and pay by their use."""
    what = "runs on servers that are listed under another pool, and pays for its use of them"
    fix = "read the unit costs: the bill of shared servers is split by accelerator-hours"
    for pool in plan.pools:
        if not pool.purchases:
            yield note("shared", pool.workload, what, fix)


def _beside(
    groups: tuple[GroupDesign, ...], scenario: Scenario, plan: ChosenPlan
) -> Iterator[tuple[str, Range]]:
    """Costs that the plan's bill does not hold, or holds as a share of hardware only."""
    prices = scenario.prices
    for made in groups:
        moved = made.moved
        if moved is not None and moved.egress_usd.high:
            yield f"data out of {made.group.server}, once", moved.egress_usd
        stored = storage_usd_per_month(moved.dataset_bytes, prices) if moved else None
        if stored is not None and not made.group.is_own:
            yield f"dataset stored beside {made.group.server}, a month", stored
        if made.group.purchase == "existing":
            continue  # what joins and feeds servers that exist already exists too
        if made.storage:
            choice = cheapest(made.storage)
            yield f"storage, {choice.n_units} x {choice.tier.name}, once", choice.usd
        yield from ((f"network: {fabric.purpose}, once", fabric.usd) for fabric in made.networks)
    if plan.carbon_kg_per_month is not None:
        carbon = carbon_usd_per_month(plan.carbon_kg_per_month, prices)
        yield from (("carbon, a month", carbon),) if carbon else ()
    interest = loan_interest_usd(plan.once_usd, prices.extras) if plan.once_usd else None
    if interest is not None:
        yield "interest of the loan, total", exactly(interest)


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


def materials_of(groups: Sequence[GroupDesign]) -> Iterator[MaterialLine]:
    """Everything that is bought or rented, group by group."""
    for made in groups:
        group = made.group
        yield _line(made, "server", group.server, group.n_nodes)
        if group.n_accelerators:
            yield _line(made, "accelerator", group.accelerator, group.n_accelerators)
        if made.spares is not None and made.spares.n_spares and group.is_own:
            yield _line(made, "spare server", group.server, made.spares.n_spares)
        yield from _around(made)


def _line(made: GroupDesign, part: str, name: str, n: int) -> MaterialLine:
    group = made.group
    seller = ", ".join(filter(None, (group.cloud, group.region)))
    supply = " at ".join(filter(None, (group.purchase, seller)))
    return MaterialLine(part=part, name=name, n_units=n, workload=group.workload, supply=supply)


def _around(made: GroupDesign) -> Iterator[MaterialLine]:
    """Storage and networks of the group."""
    workload, is_there = made.group.workload, made.group.purchase == "existing"
    supply = "existing" if is_there else "to be provided"
    if made.storage:
        choice = cheapest(made.storage)
        yield MaterialLine(
            part="storage",
            name=choice.tier.name,
            n_units=choice.n_units,
            workload=workload,
            supply=supply,
            usd=None if is_there else choice.usd,
        )
    for fabric in made.networks:
        yield MaterialLine(
            part="switch",
            name=f"{fabric.switch.name}, {fabric.purpose}",
            n_units=fabric.counts.n_switches,
            workload=workload,
            supply=supply,
            usd=None if is_there else fabric.usd,
        )
        yield from _cables(fabric, workload, supply)


def _cables(fabric: FabricPlan, workload: str, supply: str) -> Iterator[MaterialLine]:
    for run in fabric.runs:
        kind = run.link.name if run.link else run.medium
        name = f"{kind}, {run.between}, up to {run.longest_m:.0f} m"
        yield MaterialLine(
            part="cable", name=name, n_units=run.n_cables, workload=workload, supply=supply
        )


def software_of(
    pools: Sequence[PlannedPool], catalog: Catalog
) -> Iterator[tuple[str, tuple[SoftwareLayer, ...]]]:
    """The stack of every pool that names an engine or a framework."""
    for pool in pools:
        name, _, number = pool.engine.partition(" ")
        card = catalog.accelerators.get(AcceleratorId(pool.accelerator))
        if name and card is not None:
            yield (
                pool.workload,
                recommended_stack(name, number, arch=card.instruction_set, maker=card.vendor),
            )

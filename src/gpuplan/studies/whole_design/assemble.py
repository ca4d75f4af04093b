"""A plan with everything around it, in: a plan file; out: machines, money, energy, objections."""

from dataclasses import replace
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.cost.items import carbon_usd_per_month
from gpuplan.cost.rent_or_own import own_or_burst
from gpuplan.cost.statement import cents
from gpuplan.cost.value import npv_usd
from gpuplan.design.facility import checklist
from gpuplan.design.storage import cheapest
from gpuplan.design.totals import place_findings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.worth import LoadBlock
from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.system.designed import (
    DesignedPlan,
    GroupDesign,
    MachineGroup,
    Money,
    OwnInstead,
)
from gpuplan.domain.system.findings import Finding
from gpuplan.errors import InfeasibleError, PlannerError, Problem, ViolationError, one
from gpuplan.inputs.plan_file import read_plan
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.market.owned import bought_nodes, place_of
from gpuplan.studies.power.carbon import NodeGroup, carbon_of, place_at
from gpuplan.studies.power.node_draw import node_watts
from gpuplan.studies.whole_design.load_shifting import with_shift
from gpuplan.studies.whole_design.machines import design_group, machines_of
from gpuplan.studies.whole_design.money import interest, pool_costs, span_of, statement_of_plan
from gpuplan.studies.whole_design.rent_or_own import ways_of
from gpuplan.units import HOURS_PER_MONTH, MONTH


def design(path: Path) -> DesignedPlan:
    """Hosts, storage, network, place, spares, money and carbon of a plan file."""
    return design_plan(read_plan(path), read_catalog())


def design_plan(answer: Answer, catalog: Catalog) -> DesignedPlan:
    """The same for a plan that is read already."""
    plan = answer.plan
    if plan is None:
        fix = "loosen what stands in the way: gpuplan explain"
        raise one(InfeasibleError, answer.name, "plan", "holds no fleet to design for", fix)
    scenario = scenario_from_dict(answer.provenance.scenario, name=answer.name)
    machines = list(machines_of(plan.pools, scenario, catalog))
    groups = with_carbon([design_group(one, scenario) for one in machines], plan, scenario, catalog)
    groups = with_shift(groups, scenario, catalog, plan=plan)
    money, told, unpriced = _money(answer, plan, scenario, groups=groups, catalog=catalog)
    notes = (*(note for one in groups for note in one.assumptions), *told)
    return DesignedPlan(
        name=answer.name,
        groups=groups,
        money=money,
        findings=tuple(dict.fromkeys([*_findings(groups, scenario), *_shared(plan), *unpriced])),
        assumptions=tuple(dict.fromkeys((*notes, *money.statement.assumptions))),
        checklist=tuple(
            item
            for one in groups
            if one.facility is not None
            for item in checklist(one.facility, scenario.site or Site())
        ),
    )


def refuse_design(designed: DesignedPlan) -> None:
    """Raise ViolationError where something around the plan cannot be, with its fix."""
    errors = [f for f in designed.findings if f.severity == "error"]
    if errors:
        raise ViolationError(designed.name, [Problem(f.where, f.what, f.fix) for f in errors])


def _findings(groups: tuple[GroupDesign, ...], scenario: Scenario) -> list[Finding]:
    """Objections of each group, and of all that share one place."""
    found = [finding for made in groups for finding in made.findings]
    places = [made.facility for made in groups if made.facility is not None]
    if places and scenario.site is not None:
        drawn = [
            plan for made in groups for plan in made.networks if "cheapest" not in plan.purpose
        ]
        found += place_findings(places, drawn, scenario.site)
    return found


def _shared(plan: ChosenPlan) -> list[Finding]:
    """Pools without a purchase of their own: their part of the machines is told nowhere."""
    what = "runs on machines that stand under another pool: its cost is in theirs"
    fix = "read dollars per paid hour there, times the hours of this pool"
    return [
        Finding(severity="note", rule="shared", where=pool.workload, what=what, fix=fix)
        for pool in plan.pools
        if not pool.purchases
    ]


# --- energy and carbon --------------------------------------------------------------------------


def with_carbon(
    groups: list[GroupDesign], plan: ChosenPlan, scenario: Scenario, catalog: Catalog
) -> tuple[GroupDesign, ...]:
    """Each group with its part of the plan's energy, and what that emits where it stands."""
    if plan.energy_j_per_month is None:
        return tuple(groups)
    drawn = [_weight_w(made.group, catalog) for made in groups]
    whole, mean_w = sum(drawn), plan.energy_j_per_month / MONTH
    if not whole:
        return tuple(groups)
    return tuple(
        _carbon(
            made,
            mean_w * share / whole,
            span_of(plan, scenario.workload(made.group.workload)),
            scenario=scenario,
            catalog=catalog,
        )
        for made, share in zip(groups, drawn, strict=True)
    )


def _weight_w(group: MachineGroup, catalog: Catalog) -> float:
    power = node_watts(catalog, group.accelerator, group.n_accelerators_per_node)
    return power.mean_w * group.n_nodes * group.paid_frac


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
    except PlannerError as error:
        what = f"nobody describes region {group.region!r}: {error}"
        note = Finding(
            severity="note",
            rule="place-unknown",
            where=group.machine,
            what=what,
            fix="energy and carbon there stay unknown",
        )
        return replace(made, findings=(*made.findings, note))
    held = NodeGroup(group.accelerator, group.n_accelerators_per_node, n_mean, drawn_w / n_mean)
    account = carbon_of(catalog, [held], place=place, seconds=span_s, build=scenario.policy.build)
    told = [note for note in account.assumptions if note.change not in _unused(site)]
    return replace(made, carbon=account, assumptions=(*made.assumptions, *told))


def _unused(site: Site | None) -> tuple[str, ...]:
    """Keys whose assumed values carbon does not rest on: energy's price, and what the user gave."""
    found = ["site.electricity_usd_per_kwh"]
    if site is not None and site.pue_ratio is not None:
        found.append("site.pue")
    return tuple(found)


# --- money --------------------------------------------------------------------------------------


def _money(
    answer: Answer,
    plan: ChosenPlan,
    scenario: Scenario,
    *,
    groups: tuple[GroupDesign, ...],
    catalog: Catalog,
) -> tuple[Money, tuple[Assumption, ...], tuple[Finding, ...]]:
    account = statement_of_plan(answer, plan, scenario)
    pools, told = pool_costs(answer, plan, scenario)
    instead, own_told = own_instead(groups, scenario, catalog)
    beside, beside_told = _beside(groups, scenario, plan)
    ways = ways_of(
        tuple(made.group for made in groups),
        scenario,
        catalog,
        plan=plan,
        begins=answer.provenance.as_of,
    )
    return (
        Money(
            statement=account,
            npv_usd=npv_usd(account),
            plan_total_cents=cents(plan.total_usd),
            pools=pools,
            own_instead=instead,
            ways=ways.found,
            beside=(*beside, *interest(plan, scenario)),
        ),
        (*told, *own_told, *beside_told, *ways.assumptions),
        ways.findings,
    )


def own_instead(
    groups: tuple[GroupDesign, ...], scenario: Scenario, catalog: Catalog
) -> tuple[tuple[OwnInstead, ...], tuple[Assumption, ...]]:
    """Rented machines against bought ones, where the user knows what hardware costs."""
    allowed = (*scenario.policy.purchases, "owned")
    asked = replace(scenario, policy=replace(scenario.policy, purchases=allowed))
    rates = {
        rate.node.accelerator: rate
        for rate in bought_nodes(asked, catalog, place_of(scenario))
        if isinstance(rate, NodeRate)
    }
    found, told = [], []
    for made in groups:
        rate = rates.get(made.group.accelerator)
        each = rate.usd_per_accelerator_h if rate else None
        if made.group.is_own or rate is None or each is None:
            continue
        found.append(_instead(made.group, each))
        told += list(rate.assumptions)
    return tuple(found), tuple(dict.fromkeys(told))


def _instead(group: MachineGroup, own_usd_per_h: Range) -> OwnInstead:
    n, paid = group.n_accelerators_per_node, min(1.0, group.paid_frac)
    blocks = (
        LoadBlock(n_nodes=group.n_nodes, n_hours=HOURS_PER_MONTH * paid),
        LoadBlock(n_nodes=0, n_hours=HOURS_PER_MONTH * (1 - paid)),
    )
    best = own_or_burst(
        blocks,
        own_usd_per_node_h=own_usd_per_h.mid * n,
        cloud_usd_per_node_h=group.price_usd_per_node_h,
    )
    return OwnInstead(
        group=group,
        own_usd_per_accelerator_h=own_usd_per_h,
        rent_usd_per_accelerator_h=group.price_usd_per_node_h / n,
        best=best,
    )


def _beside(
    groups: tuple[GroupDesign, ...], scenario: Scenario, plan: ChosenPlan
) -> tuple[tuple[tuple[str, Range], ...], tuple[Assumption, ...]]:
    """Costs that the plan's bill does not hold, or holds as a share of hardware only."""
    found: list[tuple[str, Range]] = []
    told: list[Assumption] = []
    for made in groups:
        if made.moved is not None and made.moved.egress_usd.high:
            found.append((f"data out of {made.group.machine}, once", made.moved.egress_usd))
        if made.group.purchase == "existing":
            continue  # what joins and feeds machines that are there is there too
        if made.storage:
            choice = cheapest(made.storage)
            found.append((f"storage, {choice.n_units} x {choice.tier.name}, once", choice.usd))
        found += [(f"network: {fabric.purpose}, once", fabric.usd) for fabric in made.networks]
    if plan.carbon_kg_per_month is not None:
        carbon = carbon_usd_per_month(plan.carbon_kg_per_month, scenario.prices)
        found += [("carbon, a month", carbon)] if carbon else []
    return tuple(found), tuple(dict.fromkeys(told))

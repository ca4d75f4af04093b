"""A plan with everything around it, assembled: money, findings, assumptions, checklist."""

from collections.abc import Iterator
from datetime import date

from gpuplan.cost.items import carbon_usd_per_month, loan_interest_usd, storage_usd_per_month
from gpuplan.cost.statement import cents
from gpuplan.cost.value import npv_usd
from gpuplan.design.facility import checklist
from gpuplan.design.storage import cheapest
from gpuplan.design.totals import shared_site_findings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.system.designed import (
    DesignedPlan,
    GroupDesign,
    Money,
    OwnInstead,
    PoolCost,
    RentOrOwn,
)
from gpuplan.domain.system.findings import Finding, note
from gpuplan.errors import InfeasibleError, Problem, ViolationError, one
from gpuplan.studies.system_check.placement import Remark, assumptions_in, findings_in
from gpuplan.studies.whole_design.rent_or_own import design_market, own_instead, rent_or_own_of
from gpuplan.studies.whole_design.statement import statement_of_plan
from gpuplan.studies.whole_design.unit_costs import costs_by_team, pool_costs


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
    said = [
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
        findings=findings_in(said),
        assumptions=assumptions_in(said),
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

"""Other ways to the same work: commitments, API tokens, less energy, mixed fleets.

Reasons beyond the comparison of fleets: limits, the prefix cache, deferrable work.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuplan.cost.per_unit import service_cents
from gpuplan.domain.columns import floats
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.worth import Tokens
from gpuplan.domain.plan.answer import Alternative, Crossover, Explanation
from gpuplan.domain.plan.packing import nodes_for
from gpuplan.domain.plan.selection import (
    FleetOption,
    FleetPart,
    MixedFleet,
    Selection,
    SelectionProblem,
)
from gpuplan.domain.plan.sizing import DemandProfile, Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving
from gpuplan.selection.choose import select
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.sensitivity.limit_prices import limit_prices
from gpuplan.selection.sensitivity.pareto import pareto
from gpuplan.studies.explanation.comparison import FleetComparison
from gpuplan.studies.market.offers import Market
from gpuplan.studies.market.purchases import SPOT_NOTE, all_hours_usd
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.options import pool_name, terms_of
from gpuplan.studies.planning.priced import paid_by, priced
from gpuplan.studies.sizing.prefix import prefix_sensitivity
from gpuplan.units import HOUR, HOURS_PER_MONTH, KWH, YEAR

MOST_OPTIONS = 400  # above, trade-offs would take longer than the plan itself
LEAST_ENERGY_FRAC = 0.02  # saved, for a trade-off to be worth a line
MOST_KINDS = 8  # of accelerators in a mixed fleet
LEAST_COST_FRAC = 0.005  # saved; below, a second kind is not worth its trouble
RESERVED = "reserved"
NEAR = Effort(gap_frac=1e-3)  # of a trade-off: it is compared by the per cent


def shown_offers(market: Market, group: SolvedGroup, option: FleetOption) -> Iterator[Alternative]:
    """The same fleet with prices that no plan rests on: commitments, marketplaces, old lists.

    An advertised discount is no price: it is shown, to be asked for, and never planned with.
    """
    choice, periods = group.choice, group.sizings[0].demand.periods
    cheapest: dict[str, NodeRate] = {}
    for rate in sorted(market.shown, key=lambda rate: (rate.price_usd_per_h.mid, rate.id)):
        if pool_name(rate) == option.pool and rate.purchase in (RESERVED, "on_demand"):
            is_firmer = rate.purchase in cheapest and cheapest[rate.purchase].evidence.is_weak
            if rate.purchase not in cheapest or (is_firmer and not rate.evidence.is_weak):
                cheapest[rate.purchase] = rate
    for rate in cheapest.values() if not choice.is_jobs else ():
        terms = (*choice.table.problem.terms, terms_of(rate, periods))
        found = paid_by(choice, terms)
        if found is not None and found.selection.worth_cents < choice.selection.worth_cents:
            yield _offered(choice, found, option, rate)


def _offered(choice: Choice, found: Choice, option: FleetOption, rate: NodeRate) -> Alternative:
    pool, usd = choice.pool(option.pool), found.usd_per_month
    provisioned = [h for h in found.selection.provisioned if h.terms == rate.id]
    nodes = sum(int(h.n_nodes.max(initial=0)) for h in provisioned)
    years = (rate.terms.term_s or 0.0) / YEAR
    term = f"{years:.0f} year{'s' if years > 1 else ''}, " if years else f"{rate.node.cloud}, "
    if rate.purchase == RESERVED and rate.evidence.is_weak:
        term += "advertised, no price list backs it, so it is not planned with: "
    return Alternative(
        kind=RESERVED if rate.purchase == RESERVED else "indicative price",
        fleet=f"{nodes * pool.n_accelerators_per_node} x {pool.accelerator}",
        usd_per_month=usd,
        extra_usd_per_month=usd - choice.usd_per_month,
        remark=f"{option.workload}: {term}{rate.evidence.note}; ask for a quote and enter it",
    )


def spot_prices(market: Market, sizing: Sizing, *, chosen_usd: float) -> Iterator[Alternative]:
    """The cheapest fleet on spot capacity, and why a service is not planned on it."""
    found: list[tuple[float, NodeRate, Sized]] = []
    for rate in (*market.rates, *market.shown):
        if rate.purchase != "spot":
            continue
        for sized in sizing.sized:
            if sized.candidate.accelerator != rate.node.accelerator:
                continue
            n = nodes_for(sized.candidate, sized.n_replicas, rate.node.n_accelerators)
            usd = all_hours_usd(rate, n)
            found += [] if usd is None else [(usd, rate, sized)]
    if not found:
        return
    usd, rate, sized = min(found, key=lambda each: (each[0], each[1].id))
    yield Alternative(
        kind="spot",
        fleet=f"{sized.n_accelerators} x {rate.node.accelerator} {sized.candidate.spread}",
        usd_per_month=usd,
        extra_usd_per_month=usd - chosen_usd,
        remark=f"{sizing.workload}: {SPOT_NOTE}",
    )


def token_services(
    scenario: Scenario, demand: DemandProfile, *, chosen_usd: float
) -> Iterator[Alternative]:
    """The same requests bought by the token, where the user gives such prices."""
    workload = scenario.workload(demand.workload)
    work = workload.work if workload else None
    rate = demand.mean_requests_per_s
    if not isinstance(work, Serving) or rate is None:
        return
    n = rate * HOURS_PER_MONTH * HOUR
    cached = work.request.prefix_hit_frac.mid
    tokens = Tokens(
        n_input=n * demand.input_tokens * (1 - cached),
        n_cached=n * demand.input_tokens * cached,
        n_output=n * demand.output_tokens,
    )
    for price in scenario.prices.tokens:
        usd = service_cents(tokens, price) / 100.0
        yield Alternative(
            kind="API tokens",
            fleet=price.name,
            usd_per_month=usd,
            extra_usd_per_month=usd - chosen_usd,
            remark=f"{demand.workload}: at its mean load, without servers of your own",
        )


def other_purchase(choice: Choice) -> Iterator[Alternative]:
    """Rented where the plan buys, bought where it rents: at most what that costs.

    Fleets are those that were sized at the prices of both: alone, another may be cheaper.
    """
    problem = choice.table.problem
    bought = {terms.name for terms in problem.terms if terms.purchase == "owned"}
    provisioned = {each.terms for each in choice.selection.provisioned}
    is_bought = bool(provisioned & bought)
    others = tuple(terms for terms in problem.terms if (terms.name in bought) != is_bought)
    if choice.is_jobs or not bought or not others or "existing" in provisioned:
        return
    pools = {terms.pool for terms in others}
    options = [option for option in problem.options if option.pool in pools]
    if {option.workload for option in options} != {x.workload for x in problem.options}:
        return
    requested = choice.table._replace(problem=replace(problem, terms=others))
    found = priced(choice._replace(table=requested), *options)
    if found is not None:
        yield Alternative(
            kind="rented instead" if is_bought else "bought instead",
            fleet=", ".join(option.name for option in found.selection.chosen),
            usd_per_month=found.usd_per_month,
            extra_usd_per_month=found.usd_per_month - choice.usd_per_month,
            remark="at most this, on what was sized here; policy.purchases plans it alone",
        )


def trade_offs(choice: Choice) -> Iterator[Alternative]:
    """Plans that use less energy for more money: none is better in both."""
    problem = choice.table.problem
    kinds = {pool.accelerator for pool in problem.pools}
    if problem.objective != "cost" or len(problem.options) > MOST_OPTIONS or len(kinds) < 2:
        return
    if any(pool.mean_w == 0 for pool in problem.pools) or problem.limits:
        return  # a draw that nobody published would win by being unknown
    found = pareto(problem, "energy", n_points=3, effort=NEAR)
    for point in found[:-1]:
        now = found[-1]  # the cheapest
        if point.other > now.other * (1 - LEAST_ENERGY_FRAC):
            continue
        kwh = (now.other - point.other) / KWH / choice.n_months
        yield Alternative(
            kind="less energy",
            fleet=", ".join(option.name for option in point.selection.chosen),
            usd_per_month=point.cost_usd / choice.n_months,
            extra_usd_per_month=(point.cost_usd - now.cost_usd) / choice.n_months,
            remark=f"saves {kwh:,.0f} kWh/month",
        )


def mixed_fleet(problem: SelectionProblem, fleets: FleetComparison) -> Iterator[Alternative]:
    """The cheapest mix of accelerators, where it is cheaper than one kind.

    Each kind carries what it carries alone: a router that sends each as much as it can take.
    """
    parts, demand, chosen_usd = _parts(fleets, problem), fleets.demand, fleets.chosen_usd
    if len(parts) < 2 or problem.horizon.shape[1] > 1 or len(problem.workloads) > 1:
        return
    load = demand.peak_of(0, 0) * np.asarray(demand.hours.load_frac)[None, None, :]
    mixed = MixedFleet(
        workload=demand.workload,
        n_load=floats(load),
        parts=tuple(parts.values()),
        n_lost=max(curve.n_spare for curve in fleets.curves),
    )
    found = select(replace(problem, options=(), mixed=(mixed,)), Effort(gap_frac=1e-4, max_s=5.0))
    if not isinstance(found, Selection):
        return
    # Shares are in replicas: each takes all accelerators of its layout.
    most = {share.option: round(float(share.n_amount.max())) for share in found.shares}
    used = {kind: n * parts[kind].n_accelerators_per_replica for kind, n in most.items() if n}
    months = problem.horizon.period_s / HOUR / HOURS_PER_MONTH
    usd = sum(line.nominal_cents for line in found.bill) / 100.0 / months
    if len(used) > 1 and usd <= chosen_usd * (1 - LEAST_COST_FRAC):
        yield Alternative(
            kind="mixed fleet",
            fleet=" + ".join(f"{n} x {name}" for name, n in used.items()),
            usd_per_month=usd,
            extra_usd_per_month=usd - chosen_usd,
            remark=f"{demand.workload}: cheaper, but two kinds to operate, route to and keep "
            "spares of",
        )


def _parts(fleets: FleetComparison, problem: SelectionProblem) -> dict[str, FleetPart]:
    """The cheapest fleet of each kind, whole replicas in nodes that they divide."""
    pools = {pool.name for pool in problem.pools}
    parts: dict[str, FleetPart] = {}
    for curve in fleets.curves:
        pool = curve.name.rsplit(", ", 1)[0].rsplit(" on ", 1)[1]
        size = curve.candidate.n_accelerators
        fits = curve.candidate.share is None and curve.n_per_node % size == 0
        if fits and pool in pools and curve.kind not in parts and len(parts) < MOST_KINDS:
            parts[curve.kind] = FleetPart(
                name=curve.kind,
                pool=pool,
                n_accelerators_per_replica=size,
                n_load_per_replica=min(curve.n_load_per_replica, fleets.demand.peak_of(0, 0)),
            )
    return parts


def window_reasons(choice: Choice) -> Explanation:
    """In which hours deferrable work runs, and beside whom."""
    return Explanation(why=tuple(_window_lines(choice)))


def _window_lines(choice: Choice) -> Iterator[str]:
    for option in choice.selection.chosen:
        row = choice.table.row_of(option)
        if not row.is_window:
            continue
        hosts = [o.workload for o in choice.selection.chosen if o.pool == option.pool]
        beside = ", ".join(name for name in hosts if name != option.workload)
        where = f" on the nodes of {beside}" if beside else ""
        yield f"{option.workload}: {row.sized.remarks[-1]}{where}"


def limit_reasons(choice: Choice) -> Explanation:
    """What one per cent more of each limit that binds would save."""
    problem = choice.table.problem
    if not problem.limits:
        return Explanation()
    lines = [
        f"{price.limit} is binding: {price.step_frac:.0%} more of it saves "
        f"${price.saved_usd / choice.n_months:,.0f}/month"
        for price in limit_prices(problem, choice.selection)
        if price.saved_usd > 0
    ]
    return Explanation(binding=tuple(lines))


def prefix_reasons(inputs: PlanInputs, sized: Sized) -> Explanation:
    """What the prefix cache hit rate decides, where the user counts on it."""
    workload = inputs.scenario.workload(sized.candidate.workload)
    work = workload.work if workload else None
    if workload is None or not isinstance(work, Serving) or sized.method != "simulated":
        return Explanation()
    if work.request.prefix_hit_frac.mid == 0:
        return Explanation()
    points = prefix_sensitivity(workload, inputs.scenario, inputs.around, sized.candidate)
    rows = (
        Crossover(
            what=f"prefix cache hit rate of {workload.name}",
            at=f"{point.hit_frac:.0%} of prompt tokens",
            then=f"{point.prefill_tokens_per_s:,.0f} tokens/s left to prefill; "
            f"{point.cache_tokens / 1e6:,.1f} M tokens of KV cache all the same; "
            + (
                f"{point.n_replicas} replicas"
                if point.n_replicas
                else "no number of replicas meets the SLOs"
            ),
        )
        for point in points
    )
    return Explanation(crossovers=tuple(rows))

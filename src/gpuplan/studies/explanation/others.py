"""Other ways to the same work: commitments, tokens by the piece, less energy for more money."""

from collections.abc import Iterator

from gpuplan.cost.per_unit import service_cents
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.worth import Tokens
from gpuplan.domain.plan.answer import Alternative
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving
from gpuplan.selection.sensitivity.pareto import pareto
from gpuplan.studies.market.offers import Market
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import pool_name
from gpuplan.units import HOUR, HOURS_PER_MONTH, KWH

MOST_OPTIONS = 400  # above, trade-offs would take longer than the plan itself
LEAST_SAVED_FRAC = 0.02  # of the energy, for a trade-off to be worth a line


def commitment(market: Market, choice: Choice, option: FleetOption) -> Iterator[Alternative]:
    """The same nodes under the cheapest published commitment: weak evidence, so only shown."""
    per_node = choice.pool(option.pool).n_accelerators_per_node
    nodes = -(-(int(option.need.max()) + option.n_reserve) // per_node)
    offered = [
        rate
        for rate in market.shown
        if rate.purchase == "reserved" and pool_name(rate) == option.pool
    ]
    if not offered or choice.is_jobs:
        return
    best = min(offered, key=lambda rate: (rate.price_usd_per_h.mid, rate.id))
    now = _usd_per_month(choice)
    usd = nodes * best.price_usd_per_h.mid * HOURS_PER_MONTH
    if usd < now:
        yield Alternative(
            kind="commit",
            fleet=f"{nodes * per_node} x {choice.pool(option.pool).accelerator}",
            usd_per_month=usd,
            extra_usd_per_month=usd - now,
            power_w=0.0,
            remark=f"{option.workload}: {_commitment(best)}; ask for a quote and enter it",
        )


def _commitment(rate: NodeRate) -> str:
    years = (rate.terms.term_s or 0.0) / (365 * 24 * HOUR)
    return f"{years:.0f} year{'s' if years > 1 else ''}, {rate.evidence.note}"


def token_services(
    scenario: Scenario, demand: DemandProfile, *, chosen_usd: float
) -> Iterator[Alternative]:
    """The same requests bought by the token, where the user gives such prices."""
    workload = scenario.workload(demand.workload)
    work = workload.work if workload else None
    rate = demand.mean_requests_per_s
    if not isinstance(work, Serving) or rate is None or not scenario.prices.tokens:
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
            kind="buy by the token",
            fleet=price.name,
            usd_per_month=usd,
            extra_usd_per_month=usd - chosen_usd,
            power_w=0.0,
            remark=f"{demand.workload}: at its mean load, no machines of your own",
        )


def trade_offs(choice: Choice) -> Iterator[Alternative]:
    """Plans that use less energy for more money: none is better in both."""
    problem = choice.rows.problem
    kinds = {pool.accelerator for pool in problem.pools}
    if problem.objective != "cost" or len(problem.options) > MOST_OPTIONS or len(kinds) < 2:
        return
    if any(pool.mean_w == 0 for pool in problem.pools) or problem.limits:
        return  # a draw that nobody published would win by being unknown
    found = pareto(problem, "energy", n_points=3)
    if len(found) < 2:
        return
    now = found[-1]
    for point in found[:-1]:
        if point.other > now.other * (1 - LEAST_SAVED_FRAC):
            continue
        kwh = (now.other - point.other) / KWH / choice.n_months
        names = ", ".join(option.name for option in point.selection.chosen)
        yield Alternative(
            kind="less energy",
            fleet=names,
            usd_per_month=point.cost_usd / choice.n_months,
            extra_usd_per_month=(point.cost_usd - now.cost_usd) / choice.n_months,
            power_w=0.0,
            remark=f"saves {kwh:,.0f} kWh a month",
        )


def _usd_per_month(choice: Choice) -> float:
    return sum(line.nominal_cents for line in choice.bill) / 100.0 / choice.n_months

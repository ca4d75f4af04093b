"""The user's limits as named rows: money, power, accelerators, carbon."""

from collections.abc import Iterator

from gpuplan.domain.plan.selection import LIMIT_UNITS, NamedLimit
from gpuplan.domain.plan.sizing import Periods
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.units import KW, MONTH, YEAR


def amount_text(limit: NamedLimit, amount: float, period_s: float) -> str:
    """An amount of a limit as the user gave it: by the month or the year where it was so."""
    if limit.kind in ("spend", "upfront"):
        if limit.name.startswith("budget.usd_per_month"):
            return f"${amount * MONTH / period_s:,.0f}/month"
        return f"${amount:,.0f}"
    if limit.kind == "power":
        return f"{amount / KW:,.1f} kW"
    return f"{amount:,.6g} {LIMIT_UNITS[limit.kind]}"


def limits_of(
    scenario: Scenario, periods: Periods, *, is_jobs: bool = False
) -> tuple[NamedLimit, ...]:
    """Every limit that the scenario sets, under the key that sets it."""
    running = () if is_jobs else _running(scenario, periods)
    return (*running, *_money(scenario), *_rest(scenario, periods))


def _running(scenario: Scenario, periods: Periods) -> Iterator[NamedLimit]:
    """Limits on what a service costs while it runs; a run is bounded as a whole."""
    budget = scenario.budget
    length_s, n = float(periods.length_s[0]), len(periods.start_s)
    if budget.usd_per_month is not None:
        for period in range(n):
            name = "budget.usd_per_month" + (f" in period {period + 1}" if n > 1 else "")
            most = budget.usd_per_month * length_s / MONTH
            yield NamedLimit(name=name, kind="spend", most=most, periods=(period,))
    if budget.opex_usd_per_year is not None:
        most = budget.opex_usd_per_year * n * length_s / YEAR
        yield NamedLimit(name="budget.opex_usd_per_year", kind="spend", most=most)


def _money(scenario: Scenario) -> Iterator[NamedLimit]:
    budget = scenario.budget
    if budget.total_usd is not None:
        yield NamedLimit(name="budget.total_usd", kind="spend", most=budget.total_usd)
    if budget.capex_usd is not None:
        yield NamedLimit(name="budget.capex_usd", kind="upfront", most=budget.capex_usd)


def _rest(scenario: Scenario, periods: Periods) -> Iterator[NamedLimit]:
    policy, site = scenario.policy, scenario.site
    if policy.n_accelerators_max is not None:
        most = float(policy.n_accelerators_max)
        yield NamedLimit(name="policy.max_accelerators", kind="accelerators", most=most)
    yield from _quotas(scenario)
    if site is not None and site.power_w is not None:
        pue_ratio = (site.pue_ratio or 1.0) if site.is_facility_power else 1.0
        yield NamedLimit(name="site.power_kw", kind="power", most=site.power_w / pue_ratio)
    if site is not None and site.n_racks is not None:
        yield NamedLimit(name="site.racks", kind="racks", most=float(site.n_racks))
    if policy.carbon_max_kg_per_year is not None:
        n_years = len(periods.start_s) * float(periods.length_s[0]) / YEAR
        most = policy.carbon_max_kg_per_year * n_years
        yield NamedLimit(name="policy.max_co2_t_per_year", kind="carbon", most=most)


def _quotas(scenario: Scenario) -> Iterator[NamedLimit]:
    """Accelerators that the workloads of a team may take together."""
    for team in scenario.teams:
        mine = tuple(work.name for work in scenario.workloads if work.team == team.name)
        if mine and team.n_accelerators_quota is not None:
            yield NamedLimit(
                name=f"teams.{team.name}.quota_accelerators",
                kind="accelerators",
                most=float(team.n_accelerators_quota),
                workloads=mine,
            )

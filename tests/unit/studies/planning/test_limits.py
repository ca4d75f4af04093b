"""Limits as the user gave them: amounts over periods by hand, and their texts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fakes.plans import answer, chosen
from gpuplan.domain.columns import floats
from gpuplan.domain.plan.selection import NamedLimit
from gpuplan.domain.plan.sizing import Periods
from gpuplan.errors import InfeasibleError, ViolationError
from gpuplan.studies.planning.gate import refuse, violations
from gpuplan.studies.planning.limits import amount_text, limits_of
from gpuplan.units import KW, MONTH, YEAR

EMPTY = {
    "usd_per_month": None,
    "opex_usd_per_year": None,
    "total_usd": None,
    "capex_usd": None,
}


def scenario(*, budget=None, n_max=None, carbon=None, site=None, teams=()):
    return SimpleNamespace(
        budget=SimpleNamespace(**{**EMPTY, **(budget or {})}),
        policy=SimpleNamespace(n_accelerators_max=n_max, carbon_max_kg_per_year=carbon),
        site=site,
        teams=teams,
        workloads=tuple(SimpleNamespace(name=n, team=t) for n, t in (("chat", "a"), ("docs", "b"))),
    )


def periods(n, length_s):
    return Periods(
        scenarios=("mid",),
        start_s=floats([length_s * i for i in range(n)]),
        length_s=floats([length_s] * n),
        load_ratio=floats([[1.0] * n]),
    )


def test_a_monthly_budget_binds_in_every_period():
    found = limits_of(scenario(budget={"usd_per_month": 1000.0}), periods(4, 3 * MONTH))
    assert [limit.periods for limit in found] == [(0,), (1,), (2,), (3,)]
    assert all(limit.most == pytest.approx(3000.0) for limit in found)
    assert found[2].name == "budget.usd_per_month in period 3"


def test_yearly_sums_cover_the_horizon():
    given = scenario(budget={"opex_usd_per_year": 1200.0}, carbon=500.0)
    found = {limit.name: limit for limit in limits_of(given, periods(6, YEAR / 4))}
    assert found["budget.opex_usd_per_year"].most == pytest.approx(1800.0)
    assert found["policy.max_co2_t_per_year"].most == pytest.approx(750.0)


def test_runs_are_bounded_as_a_whole():
    given = scenario(budget={"usd_per_month": 1000.0, "total_usd": 5000.0, "capex_usd": 700.0})
    names = [x.name for x in limits_of(given, periods(1, MONTH), is_jobs=True)]
    assert names == ["budget.total_usd", "budget.capex_usd"]


@pytest.mark.parametrize(("is_facility", "most_w"), [(True, 8_000.0), (False, 10_000.0)])
def test_facility_power_is_what_pue_leaves(is_facility, most_w):
    site = SimpleNamespace(
        power_w=10_000.0, pue_ratio=1.25, is_facility_power=is_facility, n_racks=3
    )
    found = {x.name: x for x in limits_of(scenario(site=site, n_max=64), periods(1, YEAR))}
    assert found["site.power_kw"].most == pytest.approx(most_w)
    assert found["site.racks"].most == 3.0
    assert found["policy.max_accelerators"].kind == "accelerators"


def test_amounts_are_said_in_the_user_s_own_unit():
    monthly = NamedLimit(name="budget.usd_per_month in period 2", kind="spend", most=1.0)
    assert amount_text(monthly, 3000.0, 3 * MONTH) == "$1,000/month"
    whole = NamedLimit(name="budget.total_usd", kind="spend", most=1.0)
    assert amount_text(whole, 3000.0, 3 * MONTH) == "$3,000"
    power = NamedLimit(name="site.power_kw", kind="power", most=1.0)
    assert amount_text(power, 12.5 * KW, MONTH) == "12.5 kW"
    racks = NamedLimit(name="site.racks", kind="racks", most=1.0)
    assert amount_text(racks, 2.5, MONTH) == "2.5 racks"


# ── the gate ─────────────────────────────────────────────────────────────────────────────────────


def test_without_a_plan_the_gate_is_shut_with_every_conflict():
    bare = replace(answer(), plan=None)
    with pytest.raises(InfeasibleError) as caught:
        refuse(bare, is_check=False)
    assert list(caught.value.problems) == violations(bare)


@pytest.mark.parametrize(("is_kept", "is_within"), [(True, True), (False, True), (True, False)])
def test_a_violated_slo_or_limit_fails_a_check_only(is_kept, is_within):
    planned = replace(answer(), plan=chosen(is_kept=is_kept, is_within=is_within))
    refuse(planned, is_check=False)
    found = violations(planned)
    assert len(found) == (not is_kept) + (not is_within)
    if found:
        with pytest.raises(ViolationError):
            refuse(planned, is_check=True)
    assert all("violated" in fault.what or "uses" in fault.what for fault in found)


def test_a_quota_counts_the_workloads_of_its_team_alone():
    teams = [
        SimpleNamespace(name=name, n_accelerators_quota=quota)
        for name, quota in (("a", 8), ("b", None), ("nobody", 4))
    ]
    [found] = limits_of(scenario(teams=teams), periods(1, MONTH))
    assert (found.name, found.kind) == ("teams.a.quota_accelerators", "accelerators")
    assert found.most == 8.0
    assert found.workloads == ("chat",)

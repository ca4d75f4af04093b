"""Plan against actual: windows, names, idle and teams, by hand."""

from types import SimpleNamespace

import pytest

from fakes.plans import answer
from gpuplan.domain.money.statement import ActualCost
from gpuplan.studies.drift.actual_cost import compare_costs
from gpuplan.units import HOUR, MONTH


def cost(name, usd, *, names=(), window_s=MONTH, hours=0.0):
    return ActualCost(
        name=name,
        names=(name, *names),
        usd=usd,
        accelerator_s=hours * HOUR,
        window_s=window_s,
        is_idle=name == "__idle__",
    )


def compared(*costs, teams=(), team="core"):
    work = SimpleNamespace(name="chat", team=team)
    scenario = SimpleNamespace(
        workloads=(work,), teams=tuple(SimpleNamespace(name=name) for name in teams)
    )
    made = answer()
    return compare_costs(made, made.plan, scenario, costs), made.plan


def test_a_month_of_a_plan_beside_a_month_of_costs():
    found, plan = compared(cost("Chat", 15000.0, hours=4000.0))
    (row,) = found.rows
    per_month = plan.total_usd / (plan.span_s / MONTH)
    assert row.planned_usd == pytest.approx(per_month)
    assert row.difference_usd == pytest.approx(15000.0 - per_month)
    assert row.planned_accelerator_s == pytest.approx(6 * MONTH)
    assert row.actual_accelerator_s == 4000.0 * HOUR
    assert row.model


def test_a_week_is_planned_for_a_week():
    found, plan = compared(cost("chat", 1.0, window_s=168 * HOUR))
    assert found.rows[0].planned_usd == pytest.approx(plan.total_usd * 168 * HOUR / plan.span_s)


def test_a_window_that_nobody_names_is_a_month_and_is_said():
    found, _ = compared(cost("chat", 1.0, window_s=None))
    assert found.window_s == MONTH
    assert found.assumptions[0].value == "one month"


def test_labels_match_and_the_rest_is_shown():
    found, _ = compared(
        cost("pod-1", 10.0, names=("chat",)),
        cost("pod-2", 5.0, names=("chat",)),
        cost("grafana", 3.0),
        cost("__idle__", 7.0),
    )
    by_name = {row.what: row for row in found.rows}
    assert by_name["chat"].actual_usd == 15.0
    assert by_name["grafana (not in the plan)"].planned_usd is None
    assert by_name["idle"].actual_usd == 7.0
    assert found.actual_usd == 25.0


def test_teams_count_their_workloads_and_what_carries_their_name():
    found, plan = compared(
        cost("chat", 10.0), cost("x", 4.0, names=("ads",)), teams=("core", "ads", "search")
    )
    by_team = {row.what: row for row in found.teams}
    assert set(by_team) == {"core", "ads"}
    assert by_team["core"].actual_usd == 10.0
    assert by_team["core"].planned_usd == pytest.approx(found.rows[0].planned_usd)
    assert (by_team["ads"].planned_usd, by_team["ads"].actual_usd) == (None, 4.0)
    assert plan.pools[0].workload == "chat"


def test_a_workload_that_was_not_paid_for_has_no_actual():
    found, _ = compared(cost("other", 2.0))
    assert found.rows[0].actual_usd is None

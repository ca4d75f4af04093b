"""Rows of the comparison, broken one at a time."""

from dataclasses import replace

import pytest

from gpuplan.verification.comparison import comparison_checks


@pytest.fixture
def row(document):
    return next(row for row in document["comparison"] if row["is_chosen"])


def test_a_sound_comparison_agrees(document, facts, failed, row):
    checks = list(comparison_checks(document, facts))
    assert not failed(checks)
    assert {"replicas", "tokens", "weights", "costs"} <= {
        word for check in checks for word in check.name.split()
    }


def test_replicas_need_their_accelerators(document, facts, failed, row):
    row["n_accelerators"] = 0
    assert any(
        name.endswith(": accelerators") for name in failed(comparison_checks(document, facts))
    )


def test_the_chosen_row_is_the_plan(document, facts, failed, row):
    row["usd_per_month"] += 1.0
    row["n_replicas"] += 1
    row["n_accelerators"] += 8
    found = failed(comparison_checks(document, facts))
    assert any("costs what the plan costs" in name for name in found)
    assert any("is the plan's replicas" in name for name in found)


def test_cost_per_token_is_the_bill_over_the_tokens(document, facts, failed, row):
    row["usd_per_million_tokens"] *= 1.1
    [name] = failed(comparison_checks(document, facts))
    assert name.endswith("cost per million output tokens")


def test_fleets_of_a_closed_loop_have_rates_of_their_own(document, facts, failed, row):
    row["usd_per_million_tokens"] *= 1.1
    row["is_chosen"] = False
    [workload] = facts.scenario.workloads
    arrivals = replace(workload.work.arrivals, n_concurrent=50.0)
    closed = replace(workload, work=replace(workload.work, arrivals=arrivals))
    scenario = replace(facts.scenario, workloads=(closed,))
    assert not failed(comparison_checks(document, replace(facts, scenario=scenario)))


def test_no_row_reads_faster_than_its_memory(document, facts, failed, row):
    row["latency"]["tpot_p95_s"] = 1e-4
    [name] = failed(comparison_checks(document, facts))
    assert "reading the weights once" in name


def test_other_odds_are_dearer_by_what_is_said(document, facts, failed):
    cost = document["plan"]["cost_usd_per_month"]["value"]
    fleet = {
        "level_frac": 0.95, "fleet": "4 x h100-sxm", "usd_per_month": cost + 10.0,
        "extra_usd_per_month": 10.0, "probability_frac": 0.97,
    }  # fmt: skip
    document["risk"] = {"fleets": [fleet]}
    assert not failed(comparison_checks(document, facts))
    fleet["extra_usd_per_month"] = 0.0
    fleet["probability_frac"] = 0.5
    assert len(failed(comparison_checks(document, facts))) == 2


def test_a_row_without_a_fleet_has_nothing_to_check(document, facts, row):
    row["n_replicas"] = 0
    document["comparison"] = [row]
    document["risk"] = None
    assert not list(comparison_checks(document, facts))

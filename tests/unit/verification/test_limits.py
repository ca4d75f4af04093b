"""Limits of the scenario: kept, or shown as violated."""

from dataclasses import replace

import pytest

from gpuplan.domain.scenario.site import Site
from gpuplan.verification.counts import limit_checks


def test_limits_that_hold_pass(document, facts, failed):
    checks = list(limit_checks(document, facts))
    assert not failed(checks)
    assert {"limit budget.usd_per_month", "limit policy.max_accelerators"} <= {
        check.name for check in checks
    }


def tight(facts, **budget):
    scenario = facts.scenario
    return replace(facts, scenario=replace(scenario, budget=replace(scenario.budget, **budget)))


def test_a_budget_that_is_exceeded_in_silence_is_found(document, facts, failed):
    poor = tight(facts, usd_per_month=10.0)
    assert failed(limit_checks(document, poor)) == ["limit budget.usd_per_month"]
    assert failed(limit_checks(document, tight(facts, total_usd=10.0))) == [
        "limit budget.total_usd"
    ]


def test_a_violation_that_is_shown_is_no_disagreement(document, facts, failed):
    row = {"name": "budget.usd_per_month", "used_frac": 5.0, "is_kept": False}
    document["plan"]["limits"] = [row]
    assert not failed(limit_checks(document, tight(facts, usd_per_month=10.0)))
    row["is_kept"] = True
    assert failed(limit_checks(document, tight(facts, usd_per_month=10.0)))


def test_too_many_accelerators_are_found(document, pool, facts, failed):
    pool["purchases"][0]["n_nodes"] = 65
    assert failed(limit_checks(document, facts)) == ["limit policy.max_accelerators"]


@pytest.mark.parametrize(("kind", "is_found"), [("owned", True), ("on_demand", False)])
def test_power_of_a_site_counts_what_stands_there(document, pool, facts, failed, kind, is_found):
    pool["purchases"][0]["purchase"] = kind
    site = Site(power_w=100.0)
    placed = replace(facts, scenario=replace(facts.scenario, site=site))
    assert bool(failed(limit_checks(document, placed))) is is_found


def test_no_more_existing_nodes_than_there_are(document, pool, facts, failed):
    pool["purchases"][0]["purchase"] = "existing"
    assert failed(limit_checks(document, facts)) == ["existing nodes"]

"""What a manager asks first: the driver of the cost, three risks, what to do next."""

from dataclasses import replace

import pytest

from fakes.plans import answer, chosen
from fakes.results import GOLDEN_PLANS, example_plan, golden_plan
from gpuplan.domain.plan.answer import Explanation, TornadoBar
from gpuplan.domain.plan.candidate import RunSteps
from gpuplan.report.plan.summary import (
    N_RISKS,
    _first_failure,
    cost_driver,
    energy_words,
    next_steps,
    risks,
)
from gpuplan.units import DAY


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_every_plan_has_at_most_three_risks_and_something_to_do(path):
    found = golden_plan(path)
    told = risks(found)
    assert len(told) <= N_RISKS
    assert all(risk.what and risk.why for risk in told)
    assert next_steps(found)


def test_a_violation_is_the_first_risk():
    found = answer(plan=chosen(is_kept=False))
    assert "violated" in risks(found)[0].what


def test_the_widest_bar_drives_the_cost():
    found = example_plan("chat")
    bars = (
        TornadoBar(what="narrow", span="x", low_usd_per_month=9.0, high_usd_per_month=10.0),
        TornadoBar(what="wide", span="y", low_usd_per_month=5.0, high_usd_per_month=20.0),
    )
    found = replace(found, uncertainty=replace(found.uncertainty, tornado=bars))
    assert "wide (y): $5.00 … $20.00/month" in cost_driver(found)
    assert cost_driver(replace(found, uncertainty=None)) == ""


def test_an_input_that_moves_nothing_drives_nothing():
    found = example_plan("chat")
    bar = TornadoBar(what="still", span="x", low_usd_per_month=9.0, high_usd_per_month=9.0)
    assert cost_driver(replace(found, uncertainty=replace(found.uncertainty, tornado=(bar,)))) == ""


def test_the_odds_are_a_risk_with_their_cause_and_none_when_sure():
    found = example_plan("chat")
    risk = replace(
        found.decision.risk, probability_frac=0.7, by_cause={"model error": 0.72, "demand": 0.99}
    )
    unsure = replace(found, decision=replace(found.decision, risk=risk))
    [told] = [risk for risk in risks(unsure) if "chance" in risk.what]
    assert "30 %" in told.what
    assert "speed" in told.why
    assert any("Benchmark" in step for step in next_steps(unsure))
    sure = replace(
        found, decision=replace(found.decision, risk=replace(risk, probability_frac=0.99))
    )
    assert not any("chance" in risk.what for risk in risks(sure))
    assert not any("Benchmark" in step for step in next_steps(sure))


def test_without_a_plan_the_changes_that_help_are_the_steps():
    why = Explanation(conflicts=("too little power", "raise it"))
    found = replace(answer(), plan=None, explanation=why)
    assert risks(found) == ()
    assert next_steps(found) == ("Change this first: raise it.",)


def test_unknown_energy_is_called_unknown():
    plan = replace(chosen(), energy_j_per_month=None, carbon_kg_per_month=None)
    assert "unknown" in energy_words(plan)
    known = replace(plan, energy_j_per_month=3.6e9, carbon_kg_per_month=400.0)
    assert energy_words(known) == "1,000 kWh/month, 400 kg CO₂e/month"


def test_a_run_within_the_month_is_told_in_total_and_fails_as_a_run():
    found = answer()
    [pool] = found.plan.pools
    run = replace(pool, steps=RunSteps(micro_batch=1, global_batch=64), n_spare_replicas=0)
    bill = replace(found.plan.bill, span_s=20 * DAY)
    plan = replace(found.plan, pools=(run,), bill=bill)
    short = replace(found, plan=plan)
    assert "/month" not in cost_driver(short)
    assert "/month" in cost_driver(found)
    assert all("/month" not in risk.what for risk in risks(short))
    named = [risk.what for risk in _first_failure(plan)]
    assert named == [f"{run.workload}: a failed server stops the run"]


def test_the_next_step_names_a_target_that_the_plan_has_files_for():
    """A plan without an engine has no manifests; `--to all` writes what it does have."""
    for path in GOLDEN_PLANS:
        found = golden_plan(path)
        if found.plan is None or not found.plan.pools:
            continue
        step = next(line for line in next_steps(found) if line.startswith("Deploy"))
        assert ("--to kubernetes" in step) == any(pool.engine for pool in found.plan.pools)


def test_no_headroom_is_not_told_as_zero_percent_more():
    full = chosen()
    pool = replace(full.pools[0], use=replace(full.pools[0].use, peak_frac=0.8, safe_frac=0.8))
    told = " ".join(risk.why for risk in risks(answer(plan=replace(full, pools=(pool,)))))
    assert "any more load" in told
    assert "0 % more load" not in told.replace("80 %", "")


def test_growth_on_owned_nodes_begins_with_the_order_and_counts_what_will_be_rented():
    steps = next_steps(example_plan("growth"))
    assert steps[0] == "Order now, and bridge about 5 weeks in the cloud."
    [reserved] = [step for step in steps if step.startswith("Reserve")]
    assert "up to 7 nodes" in reserved
    assert reserved.endswith("as load grows.")
    assert any("another accelerator" in step for step in steps)


def test_nodes_of_one_kind_are_reserved_once():
    found = example_plan("chat")
    (pool,) = found.plan.pools
    double = replace(found, plan=replace(found.plan, pools=(pool, pool)))
    [reserved] = [step for step in next_steps(double) if step.startswith("Reserve")]
    assert f"{2 * pool.purchases[0].n_nodes} nodes" in reserved


def test_a_run_is_deployed_as_a_run():
    [deploy] = [s for s in next_steps(example_plan("large-training")) if s.startswith("Deploy")]
    assert "training" in deploy
    assert "vllm" not in deploy

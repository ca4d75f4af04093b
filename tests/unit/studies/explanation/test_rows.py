"""Rows of the comparison, their front and their odds, from one plan of two accelerators."""

from dataclasses import replace
from datetime import date

import pytest

from fakes.fleets import sized
from fakes.plans import comparison_row
from gpuplan.domain.plan.comparison import RiskFleet
from gpuplan.domain.plan.sizing import LimitMargin
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.studies.explanation.comparison import row_name
from gpuplan.studies.explanation.risk import ServiceRisk
from gpuplan.studies.explanation.rows import PricedRow, pareto_rows

TREE = {
    "version": 1,
    "name": "rows",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "demand": {"requests_per_s": 8},
            "request": {"input_tokens": 1000, "output_tokens": 200},
            "slo": {"ttft_p95_ms": 1500, "tpot_p95_ms": 30},
        }
    ],
    "prices": {
        "offers": [
            {"accelerator": "H100", "usd_per_accelerator_h": 3.0},
            {"accelerator": "A100 80GB SXM", "usd_per_accelerator_h": 1.6},
        ]
    },
}


@pytest.fixture(scope="module")
def answer():
    return plan(PlanRequest(target="rows", tree=TREE, today=date(2026, 11, 1)))


def test_every_accelerator_and_precision_is_a_row_and_one_is_chosen(answer):
    rows = answer.decision.comparison
    found = {(row.accelerator, row.precision) for row in rows}
    assert {("h100-sxm", "bf16"), ("h100-sxm", "fp8"), ("a100-sxm-80gb", "bf16")} <= found
    assert ("a100-sxm-80gb", "fp8") not in found  # it has no units for it
    assert len(found) == len(rows)
    [chosen] = [row for row in rows if row.is_chosen]
    assert rows[0] is chosen
    assert chosen.usd_per_month == pytest.approx(answer.plan.cost_usd_per_month.value)
    [pool] = answer.plan.pools
    assert (chosen.n_replicas, chosen.n_accelerators) == (pool.n_replicas, pool.n_accelerators)
    assert chosen.layout == pool.layout


def test_the_chosen_row_is_the_cheapest_that_may_be(answer):
    rows = answer.decision.comparison
    eligible = [row for row in rows if row.evidence.is_eligible]
    assert min(eligible, key=lambda row: row.usd_per_month).is_chosen
    assert all(row.probability_frac >= 0.8 for row in eligible)
    narrow = [row for row in rows if row.precision != "bf16"]
    assert all("narrower" in row.evidence.note for row in narrow)
    assert not any(row.evidence.is_eligible for row in narrow)


def test_a_token_costs_the_month_over_its_tokens(answer):
    chosen = answer.decision.comparison[0]
    tokens = 8 * 200 * 730 * 3600
    assert chosen.usd_per_million_tokens == pytest.approx(chosen.usd_per_month / tokens * 1e6)


def test_latencies_are_named_by_their_slos(answer):
    chosen = answer.decision.comparison[0]
    assert set(chosen.latency) == {"ttft_p95_s", "tpot_p95_s"}
    reached = {slo.what: slo.reached_s.value for slo in answer.plan.slo.promises}
    assert chosen.latency["ttft_p95_s"] == pytest.approx(reached["ttft p95"])


def test_alternatives_cost_what_their_rows_cost(answer):
    rows = {row_name(row): row.usd_per_month for row in answer.decision.comparison}
    shown = [each for each in answer.alternatives if each.fleet in rows]
    assert shown
    for each in shown:
        assert each.usd_per_month == pytest.approx(rows[each.fleet])


def test_the_odds_of_the_plan_stand_beside_a_gamble_and_a_safe_one(answer):
    risk = answer.decision.risk
    assert risk.level_frac == 0.8
    assert risk.probability_frac == answer.decision.comparison[0].probability_frac
    assert answer.uncertainty.kept_frac == risk.probability_frac
    gamble, own, safe = risk.fleets
    assert (gamble.level_frac, own.level_frac, safe.level_frac) == (0.5, 0.8, 0.95)
    assert gamble.usd_per_month <= own.usd_per_month <= safe.usd_per_month
    assert safe.probability_frac >= 0.95
    assert all(odds >= risk.probability_frac for odds in risk.by_cause.values())


def margin(used: float) -> LimitMargin:
    reached = Estimate(value=used, low=used, high=used, tier="simulated")
    return LimitMargin(metric="ttft", statistic="p95", limit_s=1.0, reached_s=reached, bound_s=used)


def priced(kind, usd, *, used=0.5, power_w=100.0, odds=0.9):
    row = comparison_row(kind, usd_per_month=usd, probability_frac=odds)
    row = replace(row, evidence=replace(row.evidence, power_w=power_w))
    return PricedRow(row, None, sized(1, limits=(margin(used),)))


@pytest.mark.parametrize(
    ("usd", "level", "shown"), [(99.5, 0.5, 100), (90, 0.5, 90), (99.5, 0.95, 99.5)]
)
def test_a_saving_of_power_alone_is_no_other_odds(monkeypatch, usd, level, shown):
    risk = ServiceRisk.__new__(ServiceRisk)
    risk.chosen = priced("plan", 100.0, odds=0.9)
    risk.rows = [risk.chosen]
    other = RiskFleet(
        level_frac=level,
        fleet="other",
        usd_per_month=usd,
        extra_usd_per_month=usd - 100.0,
        probability_frac=0.99,
    )
    monkeypatch.setattr(ServiceRisk, "_guess", lambda *_: 0.0)
    monkeypatch.setattr(ServiceRisk, "_row_at", lambda *_: other)
    monkeypatch.setattr(ServiceRisk, "_probability", lambda *_: 0.9)
    assert risk.fleet_at(level).usd_per_month == shown


GROWING = """
name: growing
workloads:
  - {name: svc, kind: online_inference, model: Qwen/Qwen3-30B-A3B, demand: {requests_per_s: 10},
     request: {input_tokens: 1200, output_tokens: 300},
     slo: {ttft_p95_ms: 2000, tpot_p95_ms: 40}}
growth: {per_month_frac: {low: 0.03, mid: 0.06, high: 0.1}}
budget: {horizon_months: 12}
policy: {accelerators: {allowed: [H100]}}
"""


def test_odds_of_a_growing_service_are_those_of_its_fullest_month(tmp_path):
    """The price is that of all months: a fleet that does not grow is no bargain at today's odds."""
    path = tmp_path / "growing.yaml"
    path.write_text(GROWING)
    gamble, own, safe = plan(
        PlanRequest(target=str(path), today=date(2026, 11, 1))
    ).decision.risk.fleets
    assert gamble.usd_per_month < own.usd_per_month < safe.usd_per_month
    assert 0.5 <= gamble.probability_frac < 0.8 <= own.probability_frac < safe.probability_frac


def test_the_front_holds_what_nothing_beats_in_everything():
    rows = [
        priced("cheap", 1.0),
        priced("beaten", 2.0),
        priced("fast", 2.0, used=0.1),
        priced("cool", 2.0, power_w=50.0),
        priced("sure", 2.0, odds=0.99),
        priced("unknown", 0.5, power_w=None, used=0.9),
        PricedRow(comparison_row("none", usd_per_month=None)),
    ]
    front = [point.accelerator for point in pareto_rows(rows)]
    assert front == ["cheap", "fast", "cool", "sure", "unknown"]

"""The comparison keeps its word: forced rows, a missing winner, more demand, tighter SLOs."""

import copy

import pytest

from consistency.plans import failed, planned

CARDS = ["h100-sxm", "h200-sxm", "a100-sxm-80gb", "mi300x"]
TREE = {
    "version": 1,
    "name": "comparison",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "demand": {"requests_per_s": 20},
            "request": {"input_tokens": 1200, "output_tokens": 250},
            "slo": {"ttft_p95_ms": 1500, "tpot_p95_ms": 35},
        }
    ],
    "prices": {
        "offers": [
            {"accelerator": "h100-sxm", "usd_per_accelerator_h": 2.9},
            {"accelerator": "h200-sxm", "usd_per_accelerator_h": 3.6},
            {"accelerator": "a100-sxm-80gb", "usd_per_accelerator_h": 1.5},
            {"accelerator": "mi300x", "usd_per_accelerator_h": 2.2, "accelerators_per_node": 8},
        ]
    },
    "policy": {"accelerators": {"allowed": CARDS}},
}


def changed(**policy):
    tree = copy.deepcopy(TREE)
    tree["policy"] |= policy
    return tree


def only(*cards, **policy):
    """The same on these accelerators alone."""
    tree = changed(accelerators={"allowed": list(cards)}, **policy)
    offers = tree["prices"]["offers"]
    tree["prices"]["offers"] = [offer for offer in offers if offer["accelerator"] in cards]
    return tree


@pytest.fixture(scope="module")
def answer():
    return planned(TREE)


def eligible(answer):
    rows = [row for row in answer.decision.comparison if row.evidence.is_eligible]
    return sorted(rows, key=lambda row: row.usd_per_month)


def test_every_row_that_is_forced_costs_what_the_table_said(answer):
    for row in answer.decision.comparison:
        if row.usd_per_month is None:
            continue
        split = "always" if row.layout.n_prefill else "never"
        forced = planned(only(row.accelerator, precisions=[row.precision], disaggregation=split))
        assert forced.plan is not None, row
        assert forced.plan.cost_usd_per_month.value == pytest.approx(row.usd_per_month), row
        # At the same price a plan may take a surer layout, or what its replay shows to be short of.
        assert forced.plan.pools[0].n_accelerators == row.n_accelerators, row
        assert forced.decision.risk.probability_frac >= row.probability_frac - 1e-9


def test_without_its_winner_the_plan_is_the_runner_up(answer):
    winner, after, *_ = eligible(answer)
    assert winner.is_chosen
    left = [name for name in answer.decision.comparison if name.accelerator != winner.accelerator]
    allowed = sorted({row.accelerator for row in left})
    rest = planned(only(*allowed))
    assert rest.plan.pools[0].accelerator == after.accelerator
    assert rest.plan.cost_usd_per_month.value == pytest.approx(after.usd_per_month)


def test_no_row_gets_cheaper_with_more_demand_or_a_tighter_slo(answer):
    more, tighter = copy.deepcopy(TREE), copy.deepcopy(TREE)
    more["workloads"][0]["demand"]["requests_per_s"] = 32
    tighter["workloads"][0]["slo"]["tpot_p95_ms"] = 24
    now = {(row.accelerator, row.precision): row for row in eligible(answer)}
    for tree in (more, tighter):
        for row in eligible(planned(tree)):
            before = now[row.accelerator, row.precision]
            assert row.usd_per_month >= before.usd_per_month * (1 - 1e-9), row


def test_a_dearer_accelerator_makes_its_own_rows_dearer_and_no_other(answer):
    tree = copy.deepcopy(TREE)
    tree["prices"]["offers"][0]["usd_per_accelerator_h"] = 2 * 2.9
    dearer = {(r.accelerator, r.precision): r for r in planned(tree).decision.comparison}
    for row in answer.decision.comparison:
        if row.usd_per_month is None:
            continue
        ratio = 2.0 if row.accelerator == "h100-sxm" else 1.0
        found = dearer[row.accelerator, row.precision].usd_per_month
        assert found == pytest.approx(ratio * row.usd_per_month), row


def test_more_confidence_never_costs_less_and_is_reached(answer):
    costs = []
    for level in (0.5, 0.8, 0.95):
        found = planned(changed(min_probability_frac=level))
        assert found.decision.risk.level_frac == level
        assert found.decision.risk.probability_frac >= level
        costs.append(found.plan.cost_usd_per_month.value)
    assert costs == sorted(costs)
    assert costs[1] == pytest.approx(answer.plan.cost_usd_per_month.value)


def test_the_odds_beside_the_plan_are_those_of_a_plan_that_asks_for_them(answer):
    gamble, _, safe = answer.decision.risk.fleets
    for fleet in (gamble, safe):
        asked = planned(changed(min_probability_frac=fleet.level_frac))
        assert fleet.usd_per_month == pytest.approx(asked.plan.cost_usd_per_month.value, rel=0.02)


def test_a_fraction_that_was_chosen_is_its_row():
    """Whole accelerators that are compared alone, being too unsure, do not hide it."""
    work = {
        "name": "agents",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "demand": {"concurrent_requests": 50},
        "request": {"input_tokens": 15200, "output_tokens": 480, "prefix_hit_frac": 0.6},
        "slo": {"tpot_p95_ms": 80},
    }
    policy = {"accelerators": {"allowed": ["H200"]}}
    answer = planned({"version": 1, "name": "agents", "workloads": [work], "policy": policy})
    row, pool = answer.decision.comparison[0], answer.plan.pools[0]
    assert row.is_chosen
    assert (row.layout.share, row.n_replicas) == (pool.layout.share, pool.n_replicas)
    assert not failed(answer.proof.certificate)

"""Hardware that is there: used whole, never joined with a rented one, never dropped in silence."""

import pytest

from consistency.plans import failed, planned
from gpuplan import api
from gpuplan.report.plan.document import plan_text

OWNED = [{"accelerator": "H100", "nodes": 4, "accelerators_per_node": 8}]


def run(tokens, **training):
    work = {
        "name": "run",
        "kind": "pretraining",
        "model": {"params_b": 13},
        "precision": "bf16",
        "training": {"tokens": tokens, "sequence_tokens": 4096, **training},
    }
    return planned({"version": 1, "name": "own", "workloads": [work], "owned": OWNED})


def purchases(answer):
    return [line.purchase for pool in answer.plan.pools for line in pool.purchases]


def test_a_run_without_a_deadline_takes_all_that_is_owned():
    answer = run(5.0e11)
    assert purchases(answer) == ["existing"]
    assert answer.plan.pools[0].n_accelerators == 32
    assert not failed(answer.proof.certificate)


@pytest.mark.parametrize("days", [15, 24, 29])
def test_no_run_spans_owned_and_rented_servers(days):
    answer = run(5.0e11, deadline_days=days)
    assert len(set(purchases(answer))) == 1
    is_idle = any("stay idle" in line for line in answer.explanation.why)
    assert is_idle == ("existing" not in purchases(answer))
    # What the plan costs and what its row says are one bill, staff of the site included.
    assert answer.decision.comparison[0].usd_per_month == pytest.approx(
        answer.plan.bill.total_usd, rel=1e-6
    )
    assert not failed(answer.proof.certificate)


def test_owned_nodes_that_cannot_serve_are_named_with_the_reason():
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "precision": "fp8",
        "demand": {"requests_per_s": 1},
        "request": {"input_tokens": 1000, "output_tokens": 200},
        "slo": {"tpot_p95_ms": 60},
    }
    owned = [{"accelerator": "T4", "nodes": 1, "accelerators_per_node": 4}]
    offers = [{"accelerator": "H200", "usd_per_accelerator_h": 4.0}]
    tree = {"version": 1, "name": "own", "workloads": [work], "owned": owned}
    answer = planned({**tree, "prices": {"offers": offers}})
    [line] = [line for line in answer.explanation.why if "stay idle" in line]
    assert line.startswith("your 4 x t4 stay idle: ")
    assert len(line) > 40


def test_nodes_that_one_part_takes_are_not_in_the_rows_of_the_other():
    """Owned nodes that are not enough: a row of the rest pays rent for every node of its own."""
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "demand": {"requests_per_s": 40},
        "request": {"input_tokens": 2000, "output_tokens": 200},
        "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
    }
    owned = [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 2}]
    offers = [{"accelerator": "H100", "usd_per_accelerator_h": 3.0, "accelerators_per_node": 1}]
    tree = {"version": 1, "name": "own", "workloads": [work], "owned": owned}
    answer = planned({**tree, "prices": {"offers": offers}})
    rest = [row for row in answer.decision.comparison if row.workload == "chat (rest)"]
    assert rest
    for row in rest:
        if row.accelerator == "h100-sxm" and row.usd_per_month:
            assert row.usd_per_month >= row.n_accelerators * 3.0 * 730 - 0.01


def test_nodes_that_are_enough_today_serve_until_the_load_outgrows_them():
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "demand": {"requests_per_s": 6},
        "request": {"input_tokens": 1000, "output_tokens": 250},
        "slo": {"ttft_p95_ms": 1500, "tpot_p95_ms": 50},
    }
    tree = {
        "version": 1,
        "name": "growing",
        "workloads": [work],
        "owned": [{"accelerator": "L40S", "nodes": 1, "accelerators_per_node": 4}],
        "growth": {"per_month_frac": 0.08},
        "budget": {"horizon_months": 24},
        "policy": {"accelerators": {"allowed": ["L40S", "H100"]}},
    }
    answer = planned(tree)
    assert "existing" in purchases(answer)
    assert not failed(answer.proof.certificate)


@pytest.mark.parametrize(
    ("per_s", "months", "kind"), [(0.2, 12, "bought instead"), (6, 36, "rented instead")]
)
def test_rent_or_buy_says_what_the_other_costs(per_s, months, kind):
    """Street prices count where owned is listed; the other way costs no more than is said."""
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "demand": {"requests_per_s": per_s},
        "request": {"input_tokens": 1000, "output_tokens": 200},
        "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
    }

    def answer_of(*listed):
        policy = {"accelerators": {"allowed": ["H100"]}, "purchases": list(listed)}
        tree = {"version": 1, "name": "either", "workloads": [work], "policy": policy}
        return planned({**tree, "budget": {"horizon_months": months}})

    both = answer_of("on_demand", "owned")
    [other] = [each for each in both.alternatives if each.kind == kind]
    alone = answer_of("owned" if kind == "bought instead" else "on_demand")
    chosen = both.plan.cost_usd_per_month.value
    assert chosen < alone.plan.cost_usd_per_month.value <= other.usd_per_month * 1.001
    assert other.extra_usd_per_month == pytest.approx(other.usd_per_month - chosen)


def test_all_owned_kinds_serve_first_and_the_whole_fleet_is_simulated(tmp_path):
    """Nodes of two kinds and rented ones behind one router: one plan, one probability, one run."""
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "demand": {"requests_per_s": 40},
        "request": {"input_tokens": 2000, "output_tokens": 200},
        "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
    }
    owned = [
        {"accelerator": name, "nodes": 1, "accelerators_per_node": 4} for name in ("A100", "L40S")
    ]
    policy = {"accelerators": {"allowed": ["A100", "L40S", "H100"]}}
    answer = planned(
        {"version": 1, "name": "own", "workloads": [work], "owned": owned, "policy": policy}
    )
    pools = answer.plan.pools
    assert sorted(purchases(answer))[:2] == ["existing", "existing"]
    assert {pool.accelerator for pool in pools} == {"a100-sxm-80gb", "l40s", "h100-sxm"}
    assert sum(pool.use.load_frac for pool in pools) == pytest.approx(1.0)
    assert answer.decision.risk.probability_frac >= 0.8
    assert not failed(answer.proof.certificate)
    assert any("fresh replay" in check.name for check in answer.proof.certificate)
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer), encoding="utf-8")
    run = api.simulate_planned(path)
    assert len(run.classes) == 3
    sent = [each.n_completed / run.outcome.n_completed for each in run.classes]
    assert sent == pytest.approx([pool.use.load_frac for pool in pools], abs=0.02)
    told = {each.what: each.reached_s.value for each in answer.plan.slo.promises}
    found = run.statistics
    assert found.ttft.p95_s == pytest.approx(told["ttft p95"], rel=0.1)
    assert found.tpot.p95_s == pytest.approx(told["tpot p95"], rel=0.1)

"""Rules of the planner: limits, whole nodes, prices that may not win, sharing, waiting work."""

from datetime import date
from functools import cache

import pytest
import yaml

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.report.plan.document import plan_text

DAY = date(2026, 11, 1)
SLO = {"ttft_p95_ms": 1000, "tpot_p95_ms": 50}
REQUEST = {"input_tokens": 1500, "output_tokens": 300}


def service(name: str = "chat", rate: float = 20.0, **demand) -> dict:
    return {
        "name": name,
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "demand": {"requests_per_s": rate, **demand},
        "request": REQUEST,
        "slo": SLO,
        "capacity": [
            {"accelerator": "H100", "requests_per_s": 15},
            {"accelerator": "L40S", "requests_per_s": 5},
        ],
    }


def scenario(*works: dict, **rest) -> dict:
    rest.setdefault("policy", {})
    offers = rest.get("prices", {}).get("offers", ())
    allowed = sorted({offer["accelerator"] for offer in offers}) or ["H100", "L40S"]
    rest["policy"] = {"accelerators": {"allowed": allowed}, **rest["policy"]}
    rest.setdefault("prices", {"offers": [offer("H100", 3.0), offer("L40S", 1.6)]})
    return {"version": 1, "name": "rules", "workloads": list(works), **rest}


def offer(accelerator: str, usd: float, **rest) -> dict:
    return {"accelerator": accelerator, "usd_per_accelerator_h": usd, **rest}


@pytest.fixture
def planned(tmp_path):
    def run(tree: dict, **rest):
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(tree))
        return plan(PlanRequest(target=str(path), today=DAY, n_samples=50, **rest))

    return run


@cache
def hourly() -> tuple[float, ...]:
    return (1, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 10, 9, 10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)


def test_whole_nodes_are_paid(planned):
    prices = {"offers": [offer("H100", 3.0, accelerators_per_node=8)]}
    answer = planned(scenario(service(rate=20), prices=prices))
    pool = answer.plan.pools[0]
    assert (pool.n_replicas, pool.n_accelerators) == (2, 8)
    assert answer.plan.cost_usd_per_month.value == pytest.approx(8 * 3.0 * 730)


def test_lines_of_the_bill_add_up(planned):
    answer = planned(scenario(service()))
    total = sum(line.usd_per_month for line in answer.plan.cost_lines)
    assert total == pytest.approx(answer.plan.cost_usd_per_month.value, abs=0.01)
    assert answer.proof.bill_usd == pytest.approx(answer.plan.total_usd, abs=0.01)


def test_looser_limits_never_cost_more(planned):
    costs = []
    for budget in (4400, 6000, 9000, None):
        tree = scenario(service(), **({"budget": {"usd_per_month": budget}} if budget else {}))
        costs.append(planned(tree).plan.cost_usd_per_month.value)
    assert costs == sorted(costs, reverse=True)


def test_more_demand_never_costs_less(planned):
    rates = (1, 5, 10, 11, 20, 40, 80)
    costs = [planned(scenario(service(rate=r))).plan.cost_usd_per_month.value for r in rates]
    assert costs == sorted(costs)


def test_accelerator_limit_is_named_with_its_gap(planned):
    tree = scenario(service(rate=100), policy={"max_accelerators": 6})
    answer = planned(tree)
    assert not answer.feasible
    lines = "\n".join(answer.explanation.conflicts)
    assert "policy.max_accelerators" in lines
    assert "10 accelerators would be enough" in lines


def test_power_shortfall_is_told(planned):
    tree = scenario(
        service(rate=100),
        site={"power_kw": 5, "pue": 1.3, "electricity_usd_per_kwh": 0.1},
        prices={"offers": [offer("H100", 2.0, purchase="owned", accelerators_per_node=8)]},
    )
    answer = planned(tree)
    assert not answer.feasible
    # Ten replicas of one H100 each stand in two machines of 10.2 kW.
    assert any("15.4 kW short" in line for line in answer.explanation.conflicts)
    assert any("site.power_kw" in line and "short" in line for line in answer.explanation.conflicts)


def test_check_plans_past_the_limit_and_names_it(planned):
    tree = scenario(service(rate=100), policy={"max_accelerators": 6})
    answer = planned(tree, is_check=True)
    assert answer.feasible
    assert [use.is_kept for use in answer.plan.limits] == [False]


def test_equal_work_shares_nodes(planned):
    prices = {"offers": [offer("H100", 3.0, accelerators_per_node=8)]}
    alone = planned(scenario(service(rate=20), prices=prices))
    both = planned(scenario(service(rate=20), service("second", rate=20), prices=prices))
    assert both.plan.cost_usd_per_month.value == pytest.approx(alone.plan.cost_usd_per_month.value)
    assert "shares" in both.plan.pools[1].source


def test_work_that_may_wait_fills_valleys(planned):
    waiting = {
        "name": "archive",
        "kind": "batch_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "batch": {"docs_per_day": 200000, "deadline_h": 48},
        "request": REQUEST,
        "capacity": [{"accelerator": "H100", "requests_per_s": 15}],
    }
    prices = {"offers": [offer("H100", 1.6, purchase="owned")]}
    day = {"hourly_profile": list(hourly())}
    alone = planned(scenario(service(rate=20, **day), prices=prices))
    both = planned(scenario(service(rate=20, **day), waiting, prices=prices))
    assert both.plan.cost_usd_per_month.value == pytest.approx(alone.plan.cost_usd_per_month.value)
    assert any("deferrable: it runs in the quietest" in x for x in both.explanation.why)


def test_what_stands_there_is_used_first(planned):
    owned = [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 8}]
    answer = planned(scenario(service(rate=20), owned=owned))
    assert [line.purchase for line in answer.plan.pools[0].purchases] == ["existing"]


@pytest.mark.parametrize(("usd", "purchase"), [(60000, "owned"), (2000000, "on_demand")])
def test_buying_is_weighed_against_renting(planned, usd, purchase):
    prices = {
        "offers": [offer("H100", 3.0, accelerators_per_node=8)],
        "hardware": [{"accelerator": "H100", "usd_per_node": usd}],
    }
    answer = planned(scenario(service(rate=100), prices=prices))
    assert [line.purchase for line in answer.plan.pools[0].purchases] == [purchase]
    assert (answer.plan.once_usd > 0) == (purchase == "owned")


def test_fleets_without_a_price_are_told(planned):
    prices = {"offers": [offer("L40S", 1.6)]}
    tree = scenario(service(), prices=prices, policy={"accelerators": {"allowed": ["L40S", "L4"]}})
    tree["workloads"][0]["capacity"] = [{"accelerator": "L40S", "requests_per_s": 5}]
    answer = planned(tree)
    assert answer.plan.pools[0].accelerator == "l40s"


def test_same_seed_same_answer(planned):
    tree = scenario(service())
    assert planned(tree) == planned(tree)


def test_growth_is_paid_for_as_it_comes(planned):
    steady = planned(scenario(service(), budget={"horizon_months": 12}))
    grown = planned(
        scenario(service(), budget={"horizon_months": 12}, growth={"per_month_frac": 0.1})
    )
    assert grown.plan.total_usd > steady.plan.total_usd
    assert grown.plan.pools[0].n_replicas <= grown.plan.pools[0].purchases[0].n_nodes


@pytest.mark.parametrize("objective", ["cost", "time", "energy", "carbon", "regret"])
def test_every_objective_gives_a_plan(planned, objective):
    tree = scenario(
        service(), growth={"per_month_frac": {"low": 0.0, "mid": 0.02, "high": 0.05}},
        budget={"horizon_months": 12}, objective=objective,
        prices={"offers": [offer("H100", 3.0, cloud="aws", region="us-east-1"),
                           offer("L40S", 1.6, cloud="aws", region="us-east-1")]},
    )  # fmt: skip
    answer = planned(tree)
    assert answer.feasible
    assert answer.proof.objective == objective
    total = sum(line.usd_per_month for line in answer.plan.cost_lines)
    assert total == pytest.approx(answer.plan.cost_usd_per_month.value, rel=1e-6)
    assert answer.plan.carbon_kg_per_month > 0


def test_unknown_draws_never_win_by_being_unknown(planned):
    tree = scenario(service(), objective="energy", policy={"accelerators": {}})
    tree["workloads"][0]["capacity"] += [{"accelerator": "inferentia2", "requests_per_s": 1}]
    tree["prices"]["offers"] += [offer("inferentia2", 0.5)]
    assert planned(tree).plan.pools[0].accelerator in {"h100-sxm", "l40s"}


def test_a_plan_can_be_made_again_from_its_file(planned, tmp_path):
    first = planned(scenario(service()))
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(first))
    again = plan(PlanRequest(target=str(path), today=DAY, n_samples=50))
    assert again == first


def test_the_priciest_and_the_cheapest_are_answered(planned):
    tree = scenario(service(rate=3))
    answers = {w.question.split(",")[0]: w for w in planned(tree).explanation.why_not}
    dear = answers["the priciest accelerator"]
    assert "h100-sxm" in dear.fleet
    assert dear.extra_usd_per_month == pytest.approx((3.0 - 1.6) * 730)
    assert answers["the cheapest per hour"].answer == "it was chosen"


def test_two_services_are_sampled_together(planned):
    one = planned(scenario(service(rate=20)))
    two = planned(scenario(service(rate=20), service("second", rate=20)))
    assert two.uncertainty.kept_frac <= one.uncertainty.kept_frac
    cost = two.plan.cost_usd_per_month
    assert cost.low < cost.value < cost.high
    assert cost.value == pytest.approx(2 * one.plan.cost_usd_per_month.value)
    assert cost.high == pytest.approx(2 * one.plan.cost_usd_per_month.high, rel=0.05)

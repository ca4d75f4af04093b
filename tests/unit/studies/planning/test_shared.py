"""Limits that services and runs share are judged by their sum."""

from datetime import date
from itertools import product

import pytest
import yaml

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.report.formats import usd
from gpuplan.report.plan.headline import headline
from gpuplan.units import HOUR

DAY = date(2026, 11, 1)
SERVICE = {
    "name": "chat",
    "kind": "online_inference",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "demand": {"requests_per_s": 60},
    "request": {"input_tokens": 1500, "output_tokens": 300},
    "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
    "capacity": [{"accelerator": "H100", "requests_per_s": 15}],
}
RUN = {
    "name": "run",
    "kind": "pretraining",
    "model": {"params_b": 8},
    "precision": "bf16",
    # 4.8e21 flop at 0.4 of 989 Tflop/s: 3,370 H100-hours, 8 of them for 17.6 days.
    "training": {"tokens": 1.0e11, "deadline_days": 20},
    "capacity": [{"accelerator": "H100", "mfu_frac": 0.40}],
}


@pytest.fixture
def planned(tmp_path):
    def run(*works, is_check=False, **rest):
        offer = {"accelerator": "H100", "usd_per_accelerator_h": 3.0, "accelerators_per_node": 8}
        tree = {
            "version": 1, "name": "both", "workloads": list(works), "prices": {"offers": [offer]},
            "policy": {"accelerators": {"allowed": ["H100"]}}, **rest,
        }  # fmt: skip
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(tree))
        request = PlanRequest(target=str(path), today=DAY, n_samples=0, is_check=is_check)
        return plan(request)

    return run


def policy(n):
    return {"accelerators": {"allowed": ["H100"]}, "max_accelerators": n}


def counts(answer):
    return {pool.workload: pool.n_accelerators for pool in answer.plan.pools}


def test_both_fit_where_the_sum_fits(planned):
    answer = planned(SERVICE, RUN, policy=policy(16))
    assert counts(answer) == {"chat": 8, "run": 8}
    [use] = answer.plan.limits
    assert (use.name, use.used_frac, use.is_kept) == ("policy.max_accelerators", 1.0, True)
    assert use.used.startswith("16 ")


def test_the_headline_does_not_pay_a_run_for_ever(planned):
    """Eight of them all along, eight for 17.6 days: the sum, not one month's rate, is told."""
    answer = planned(SERVICE, RUN)
    plan = answer.plan
    assert plan.total_usd < 0.7 * plan.cost_usd_per_month.value * plan.span_s / (730 * HOUR)
    assert f"{usd(plan.total_usd)} in " in headline(answer)
    assert "while all of it runs" in headline(answer)
    assert "while all of it runs" not in headline(planned(SERVICE))


def test_each_alone_fits_but_not_both(planned):
    limit = policy(12)
    assert planned(SERVICE, policy=limit).feasible
    assert planned(RUN, policy=limit).feasible
    answer = planned(SERVICE, RUN, policy=limit)
    assert not answer.feasible
    lines = "\n".join(answer.explanation.conflicts)
    assert "policy.max_accelerators" in lines
    assert "8 accelerators of 12 accelerators are used by chat" in lines


def test_a_check_judges_the_sum(planned):
    answer = planned(SERVICE, RUN, policy=policy(12), is_check=True)
    [use] = answer.plan.limits
    assert use.used_frac == pytest.approx(16 / 12)
    assert not use.is_kept


def test_a_month_pays_for_the_service_and_the_run(planned):
    monthly = planned(SERVICE).plan.cost_usd_per_month.value  # 8 x $3 x 730 h
    once = planned(RUN).plan.total_usd
    assert monthly == pytest.approx(17_520)
    enough = planned(SERVICE, RUN, budget={"usd_per_month": 1.01 * (monthly + once)})
    [use] = enough.plan.limits
    assert use.used_frac == pytest.approx(1 / 1.01, rel=1e-3)
    short = planned(SERVICE, RUN, budget={"usd_per_month": 0.95 * (monthly + once)})
    assert not short.feasible
    assert planned(SERVICE, budget={"usd_per_month": 0.95 * (monthly + once)}).feasible


def test_a_total_budget_is_of_both(planned):
    service, run = planned(SERVICE).plan.total_usd, planned(RUN).plan.total_usd
    enough = planned(SERVICE, RUN, budget={"total_usd": 1.001 * (service + run)})
    assert enough.feasible
    short = planned(SERVICE, RUN, budget={"total_usd": 0.999 * (service + run)})
    assert not short.feasible


def test_looser_shared_limits_never_cost_more(planned):
    costs = [
        planned(SERVICE, RUN, policy=policy(n)).plan.cost_usd_per_month.value for n in (16, 24, 64)
    ]
    assert costs == sorted(costs, reverse=True)


TWO_KINDS = [
    {"accelerator": "H100", "usd_per_accelerator_h": 3.0, "accelerators_per_node": 8},
    {"accelerator": "B200", "usd_per_accelerator_h": 7.0, "accelerators_per_node": 8},
]


def on_kinds(work, *kinds):
    """A service or a run that may be on these kinds; B200 costs more and takes fewer."""
    base, speeds = {
        "service": ({**SERVICE, "demand": {"requests_per_s": 200}},
                    {"H100": {"requests_per_s": 15}, "B200": {"requests_per_s": 34}}),
        "run": ({**RUN, "training": {"tokens": 4.0e11, "deadline_days": 20}},
                {"H100": {"mfu_frac": 0.40}, "B200": {"mfu_frac": 0.38}}),
    }[work]  # fmt: skip
    return {**base, "capacity": [{"accelerator": kind, **speeds[kind]} for kind in kinds]}


def policy_of(*kinds, **rest):
    offers = [offer for offer in TWO_KINDS if offer["accelerator"] in kinds]
    return {"policy": {"accelerators": {"allowed": list(kinds)}, **rest},
            "prices": {"offers": offers}}  # fmt: skip


@pytest.mark.parametrize("n_most", [200, 64, 56, 48, 40, 32, 24])
def test_services_and_runs_are_decided_together(planned, n_most):
    """Every pair of kinds, each bought alone and added up by hand: none that fits is cheaper."""
    alone = {}
    for work, kind in product(("service", "run"), ("H100", "B200")):
        answer = planned(on_kinds(work, kind), **policy_of(kind))
        n = sum(pool.n_accelerators for pool in answer.plan.pools)
        alone[work, kind] = (n, answer.plan.total_usd)
    pairs = [
        (alone["service", a][0] + alone["run", b][0], alone["service", a][1] + alone["run", b][1])
        for a in ("H100", "B200")
        for b in ("H100", "B200")
    ]
    fits = [usd for n, usd in pairs if n <= n_most]
    both = [on_kinds(work, "H100", "B200") for work in ("service", "run")]
    answer = planned(*both, **policy_of("H100", "B200", max_accelerators=n_most))
    assert answer.feasible is bool(fits)
    if fits:
        assert answer.plan.total_usd == pytest.approx(min(fits), rel=1e-9)
        assert sum(pool.n_accelerators for pool in answer.plan.pools) <= n_most


def test_runs_that_cannot_share_are_offered_one_after_the_other(planned):
    """Two accelerators, 59 hours for each run: both end within five days, not within four."""
    offer = {"accelerator": "H100", "usd_per_accelerator_h": 3.0, "accelerators_per_node": 1}

    def conflicts(days):
        work = {"tokens": 3.5e9, "deadline_days": days}
        runs = [RUN | {"name": name, "training": work} for name in ("first", "second")]
        answer = planned(*runs, policy=policy(2), prices={"offers": [offer]})
        return [line for line in answer.explanation.conflicts if "one after another" in line]

    [line] = conflicts(8)
    assert "at once" in line
    days = float(line.split("starts after ")[1].split(" days")[0])
    assert 59 / 24 <= days <= 8 - 58.9 / 24
    assert conflicts(4) == []

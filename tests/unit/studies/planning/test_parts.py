"""Many small models share accelerators that are cut into parts."""

from datetime import date
from math import ceil

import pytest

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.report.page.plan import plan_page
from gpuplan.report.plan.answer import plan_sheet

N_PARTS = 7  # of an A100 that is cut into 1g.10gb


def small(n):
    works = [
        {"name": f"m{i}", "kind": "online_inference", "model": "Qwen/Qwen3-0.6B",
         "demand": {"requests_per_s": 0.2 + 0.01 * i},
         "request": {"input_tokens": 500, "output_tokens": 100},
         "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50}}
        for i in range(n)
    ]  # fmt: skip
    offer = {"accelerator": "A100-SXM-80GB", "usd_per_accelerator_h": 1.5}
    tree = {"version": 1, "name": "small ones", "workloads": works, "prices": {"offers": [offer]},
            "policy": {"accelerators": {"allowed": ["A100-SXM-80GB"]}}}  # fmt: skip
    return plan(PlanRequest(target="small", today=date(2026, 11, 1), n_samples=0, tree=tree))


@pytest.mark.parametrize("n", [2, 7, 8])
def test_small_models_take_parts_of_few_accelerators(n):
    """As many accelerators as their parts fill, and the bill is theirs."""
    answer = small(n)
    wanted = ceil(n / N_PARTS)
    assert sum(pool.n_accelerators for pool in answer.plan.pools) == wanted
    assert answer.plan.cost_usd_per_month.value == pytest.approx(wanted * 1.5 * 730)
    assert len(answer.plan.pools) == n
    assert all(pool.n_replicas == 1 for pool in answer.plan.pools)


def test_services_of_different_sizes_share_one_accelerator():
    """Five of 1g.10gb leave room for a larger slice; no six equal slices would hold an 8B model."""
    tree = dict(small(5).provenance.scenario)
    tiny = tree["workloads"]
    large = {**tiny[0], "name": "large", "model": "meta-llama/Llama-3.1-8B-Instruct"}
    both = plan(
        PlanRequest(
            target="both",
            today=date(2026, 11, 1),
            n_samples=0,
            tree=tree | {"workloads": [*tiny, large]},
        )
    )
    assert sum(pool.n_accelerators for pool in both.plan.pools) == 1
    assert both.plan.cost_usd_per_month.value == pytest.approx(1.5 * 730)
    assert all("fractional" in pool.source for pool in both.plan.pools[1:])


def test_parts_are_told():
    answer = small(2)
    assert "no GPU" not in plan_sheet(answer).head
    assert "1 × A100 SXM 80GB" in plan_sheet(answer).head
    told = [pool.source for pool in answer.plan.pools]
    assert "fractional GPUs (1g.10gb)" in told[1]
    assert "no GPU" not in plan_page(answer)

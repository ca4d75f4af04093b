"""What every sizer starts from: loads, lengths, ceilings, fleets in proportion."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.terms import Choice
from gpuplan.domain.scenario.workload import Layout
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.task import SizingContext, margin_of, task_of

EXAMPLES = Path(__file__).parents[4] / "examples"
CATALOG = read_catalog()
CONTEXT = SizingContext(catalog=CATALOG)
CHAT = read_scenario(EXAMPLES / "chat.yaml")


def task(scenario=CHAT, **policy):
    scenario = replace(scenario, policy=replace(scenario.policy, **policy))
    [workload] = scenario.workloads
    return task_of(workload, scenario, CONTEXT)


def estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, tier="estimated")


def test_an_open_service_is_a_poisson_load_at_its_peak():
    load = task().serving_load
    assert load.regime == "poisson"
    assert load.requests_per_s == pytest.approx(10 / 3, rel=1e-3)
    assert load.cached_input_frac == 0.0


def test_a_closed_loop_has_users_and_no_rate():
    [workload] = CHAT.workloads
    arrivals = replace(
        workload.work.arrivals, peak_requests_per_s=None, mean_requests_per_s=None, n_concurrent=32
    )
    changed = replace(workload, work=replace(workload.work, arrivals=arrivals))
    found = task_of(changed, replace(CHAT, workloads=(changed,)), CONTEXT)
    assert (found.serving_load.regime, found.serving_load.n_sequences) == ("fixed_concurrency", 32)
    # 2 s to the first token and 350 tokens of 40 ms: each user asks every 16 s.
    assert found.peak_per_s == pytest.approx(32 / 16.0)
    assert found.streams.n_users(found.peak_per_s) == pytest.approx(32)


def test_mean_and_longest_requests():
    found = task()
    mean = found.demand.input_tokens + found.demand.output_tokens
    assert found.context_tokens == round(mean)
    assert found.longest_tokens >= found.context_tokens
    [workload] = CHAT.workloads
    wide = replace(workload, work=replace(workload.work, max_context_tokens=100_000))
    assert task_of(wide, CHAT, CONTEXT).longest_tokens == 100_000


def test_the_users_ceiling_wins_over_a_usual_one():
    usual = task()
    assert usual.ceiling_frac(0.7) == 0.7
    given = replace(CHAT.policy.resilience, max_utilization_frac=0.5)
    assert task(resilience=given).ceiling_frac(0.7) == 0.5


def test_every_accelerator_is_sized_or_rejected_once():
    found = task(accelerators=Choice(allowed=("h100-sxm", "l4"), forbidden=("l4",)))
    sized, rejected = found.on_each_accelerator("fp8", lambda candidate, card: candidate)
    assert [str(c.accelerator) for c in sized] == ["h100-sxm"]
    assert len(sized) + len(rejected) == len(CATALOG.accelerators)
    assert all(isinstance(each, Rejection) and each.constraint == "policy" for each in rejected)


@pytest.mark.parametrize(("safe", "n"), [(1.0, 4), (3.4, 1), (0.5, 7)])
def test_a_fleet_in_proportion_by_hand(safe, n):
    """3.33 requests/s over what one carries, rounded up; its low end is half of it."""
    found = task()
    candidate = found.candidate(CATALOG.accelerators["h100-sxm"], "fp8")
    fleet = found.fleet_in_proportion(
        candidate,
        estimate(safe, safe / 2, 2 * safe),
        full_per_s=2 * safe,
        safe_frac=0.5,
        method="analytic",
        band="by formula",
    )
    assert fleet.n_serving == n
    ends = np.interp([1.2816, 0.0], fleet.carried.n_deviations, fleet.carried.load_per_s)
    assert ends == pytest.approx([safe / 2, safe], rel=1e-3)
    assert fleet.utilization.peak_frac == pytest.approx(10 / 3 / (n * 2 * safe), rel=1e-3)
    assert fleet.n_replicas == n + found.reserve(candidate, n).n_spare
    assert np.all(fleet.need.n_replicas >= 0)


def test_a_margin_says_whether_its_slo_is_met():
    [limit, *_] = task().limits
    inside = margin_of(limit, estimate(0.1, 0.05, 0.2), limit.limit_s)
    outside = margin_of(limit, estimate(0.1, 0.05, 0.2), 1.01 * limit.limit_s)
    assert inside.is_kept
    assert not outside.is_kept


def test_streams_and_evaluator_are_made_once():
    found = task()
    assert found.streams is found.streams
    assert found.evaluator is found.evaluator
    assert found.evaluator.load == found.serving_load


def test_a_task_without_a_model_says_what_to_give():
    [workload] = CHAT.workloads
    nameless = replace(workload, model=None)
    with pytest.raises(InputError, match="has no name"):
        _ = task_of(nameless, CHAT, CONTEXT).model


def test_layout_and_precision_of_the_user_are_kept():
    found = task()
    card = CATALOG.accelerators["h100-sxm"]
    named = replace(found.workload, precisions=("int4",), layout=Layout(n_tensor=4, n_pipeline=2))
    asked = replace(found, workload=named).candidate(card, "fp8")
    assert (asked.precision, asked.layout.tp, asked.layout.pp) == ("int4", 4, 2)
    plain = replace(found, workload=replace(found.workload, precisions=(), layout=None))
    assert plain.candidate(card, "fp8").precision == "fp8"
    assert plain.candidate(card, "fp8").n_accelerators == 1


def test_spares_of_a_pair_come_by_whole_replicas():
    found = task()
    pair = replace(
        found.candidate(CATALOG.accelerators["h100-sxm"], "fp8"),
        layout=replace(found.candidate(CATALOG.accelerators["h100-sxm"], "fp8").layout, tp=2),
    )
    assert (found.reserve(pair, 3).n_spare, found.reserve(pair, 3).n_failures) == (1, 1)
    calm = task(resilience=replace(CHAT.policy.resilience, n_failures=0))
    assert calm.reserve(pair, 3).n_spare == 0


def test_a_precision_is_asked_for_as_the_device_runs_it():
    [workload] = CHAT.workloads
    workload = replace(workload, precisions=("bf16",))
    found = task_of(workload, replace(CHAT, workloads=(workload,)), CONTEXT)
    cards = found.catalog.accelerators
    on_t4 = found.candidate(cards["t4"], "bf16")
    on_h100 = found.candidate(cards["h100-sxm"], "bf16")
    assert found.is_requested(replace(on_t4, precision="fp16"))
    assert not found.is_requested(replace(on_t4, precision="bf16"))
    assert found.is_requested(replace(on_h100, precision="bf16"))
    assert not found.is_requested(replace(on_h100, precision="fp16"))

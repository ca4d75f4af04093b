"""Work that is sized by formula: batches, stages, samples of known cost."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.sizing import SizingOptions
from gpuplan.domain.scenario.demand import LatencyLimit, Slo
from gpuplan.domain.scenario.terms import Choice
from gpuplan.domain.scenario.workload import Batch, Generic, Training, Workload
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.demand import demand_of
from gpuplan.studies.sizing.streams import busiest_hour
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.studies.sizing.workload import size_workload
from gpuplan.units import HOUR

EXAMPLES = Path(__file__).parents[4] / "examples"
CATALOG = read_catalog()
CHAT = read_scenario(EXAMPLES / "chat.yaml")
[SERVED] = CHAT.workloads
AROUND = SizingContext(catalog=CATALOG, options=SizingOptions(n_requests=3000))


def scenario_of(workload, cards=("H100",)):
    policy = replace(CHAT.policy, accelerators=Choice(allowed=cards))
    return replace(CHAT, workloads=(workload,), policy=policy)


def sizes(workload, cards=("H100",)):
    return size_workload(workload, scenario_of(workload, cards), AROUND)


def batch(n_docs, hours):
    work = Batch(
        docs_per_s=None, n_docs=n_docs, deadline_s=hours * HOUR, request=SERVED.work.request
    )
    return replace(SERVED, kind="batch_inference", work=work)


def test_a_heap_is_spread_over_its_deadline():
    sizing = sizes(batch(1e6, 24))
    assert sizing.demand.peak_requests_per_s == pytest.approx(1e6 / 86400)
    best = sizing.jobs[0]
    assert sizing.sized == ()
    assert best.method == "analytic"
    assert best.wall_s.high <= 24 * HOUR * (1 + 1e-9)


def test_half_the_time_takes_twice_the_machines():
    long = next(job for job in sizes(batch(1e7, 48)).jobs if job.candidate.share is None)
    found = sizes(batch(1e7, 24)).jobs
    short = next(job for job in found if job.candidate == long.candidate)
    assert short.n_replicas == pytest.approx(2 * long.n_replicas, abs=1)
    assert short.accelerator_s.value == pytest.approx(long.accelerator_s.value, rel=1e-6)


def test_a_model_too_large_for_its_island_gets_stages():
    workload = replace(
        SERVED, model=replace(SERVED.model, name="Qwen/Qwen3-Coder-480B-A35B-Instruct"),
        precisions=("bf16",),
    )  # fmt: skip
    slo = Slo(limits=(LatencyLimit(metric="tpot", statistic="mean", limit_s=0.2),))
    workload = replace(workload, work=replace(workload.work, slo=slo))
    sizing = sizes(workload)
    assert sizing.sized
    assert all(s.candidate.layout.pp > 1 for s in sizing.sized)
    assert {s.method for s in sizing.sized} == {"simulated"}
    whole = [r for r in sizing.rejected if r.candidate.accelerator == "h100-sxm"]
    assert {"memory"} <= {r.constraint for r in whole}


def test_narrower_than_published_is_marked():
    sizing = sizes(SERVED)
    assert all(s.candidate.is_quantized_below for s in sizing.sized)
    own = sizes(replace(SERVED, precisions=()))
    assert not any(s.candidate.is_quantized_below for s in own.sized)
    assert {s.candidate.precision for s in own.sized} == {"bf16"}
    assert "precision" in {a.what for a in own.assumptions}


def test_the_limit_of_accelerators_is_a_reason():
    scenario = scenario_of(SERVED)
    policy = replace(scenario.policy, n_accelerators_max=4)
    sizing = size_workload(SERVED, replace(scenario, policy=policy), AROUND)
    assert not sizing.sized
    counted = [r for r in sizing.rejected if r.constraint == "accelerators"]
    # The reason names what each would take if it were allowed.
    free = {s.candidate: s.n_accelerators for s in sizes(SERVED).sized}
    named = {r.candidate: r.reason for r in counted}
    assert free.keys() <= named.keys()
    for candidate, n in free.items():
        assert n > 4
        assert f"needs at least {n} accelerators, 4 are allowed" in named[candidate]


def generic(**given):
    return Workload(
        name="frames", kind="generic", work=Generic(**given), model=None, precisions=(),
        cache_precision=None, priority=0,
    )  # fmt: skip


def test_samples_of_known_cost():
    """By hand: 1e12 flop a sample at 30 % of 989e12 is 297 a second, 208 at 70 %."""
    sizing = sizes(generic(samples_per_s=1000.0, flop_per_sample=1e12))
    [h100] = sizing.sized
    assert h100.capacity_per_s.value == pytest.approx(0.7 * 0.30 * 989.4, rel=0.01)
    assert h100.n_serving == 5
    assert h100.carried is None
    assert h100.capacity_per_s.tier == "assumed"
    assert "MFU" in {a.what for a in sizing.assumptions}


def test_memory_traffic_can_be_what_counts():
    few = sizes(generic(samples_per_s=1000.0, flop_per_sample=1e9)).sized[0]
    much = sizes(
        generic(samples_per_s=1000.0, flop_per_sample=1e9, sample_activation_bytes=1e11)
    ).sized[0]
    assert much.n_serving > 10 * few.n_serving


def test_no_load_is_told():
    with pytest.raises(InputError, match="no load is known"):
        demand_of(generic(flop_per_sample=1e9), CHAT)


def test_demand_says_how_its_peak_was_found():
    demand = demand_of(SERVED, CHAT)
    assert demand.lines == ("6000 users x 2 requests an hour at the peak = 3.33 requests/s",)
    assert {a.what for a in demand.assumptions} == {"hours of the day"}


def test_a_trace_is_sized_by_its_busiest_hour():
    """Twice the rate in the second hour, and prompts of two lengths."""
    rng = np.random.default_rng(4)
    arrive = np.sort(np.concatenate([rng.uniform(0, 3600, 3600), rng.uniform(3600, 7200, 7200)]))
    trace = requests_of(arrive, rng.choice([500, 3900], len(arrive)), np.full(len(arrive), 350))
    arrivals = replace(
        SERVED.work.arrivals, peak_requests_per_s=None, mean_requests_per_s=None, n_users=None,
        trace="made.csv",
    )  # fmt: skip
    slo = Slo(limits=(LatencyLimit(metric="tpot", statistic="p95", limit_s=0.04),))
    workload = replace(SERVED, work=replace(SERVED.work, arrivals=arrivals, slo=slo))
    around = replace(AROUND, read_trace=lambda path: trace)
    sizing = size_workload(workload, scenario_of(workload), around)
    assert sizing.demand.peak_requests_per_s == pytest.approx(2.0, rel=0.05)
    assert sizing.demand.mean_requests_per_s == pytest.approx(1.5, rel=0.02)
    assert sizing.demand.input_tokens == pytest.approx(2200, rel=0.03)
    assert sizing.sized[0].method == "simulated"
    assert sizing.sized[0].little.requests_per_s == pytest.approx(2.0, rel=0.1)


def test_the_busiest_hour_keeps_its_lengths_and_its_rate():
    rng = np.random.default_rng(5)
    arrive = np.sort(rng.uniform(0, 3000, 900))
    trace = requests_of(arrive, rng.integers(1, 99, 900), rng.integers(1, 99, 900))
    hour = busiest_hour(trace, 5000, 1)
    assert len(hour) == 5400
    assert hour.arrive_s[-1] == pytest.approx(5400, rel=0.01)
    assert hour.input_tokens.mean() == pytest.approx(trace.input_tokens.mean())


def test_a_named_model_is_trained_at_a_predicted_rate():
    work = Training(
        method="lora", n_tokens=1e8, n_samples=None, n_epochs=2.0, sequence_tokens=2048,
        deadline_s=24 * HOUR,
    )  # fmt: skip
    model = replace(SERVED.model, name="meta-llama/Llama-3.1-8B-Instruct")
    workload = replace(SERVED, kind="finetuning", work=work, model=model, precisions=("bf16",))
    [job] = sizes(workload).jobs
    assert job.flop == pytest.approx(4 * 8.03e9 * 2e8, rel=0.01)
    assert job.accelerator_s.tier in ("fitted", "estimated")
    assert job.accelerator_s.low < job.accelerator_s.value < job.accelerator_s.high
    assert job.wall_s.value <= 24 * HOUR

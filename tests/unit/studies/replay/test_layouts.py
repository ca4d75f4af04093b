"""Stages, attention replicas, and routers before engines with more policies."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest, SimulateRequest
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.replay.replicas import prepared
from gpuplan.studies.replay.sizes import smallest_holding

ROUTERS = ("round_robin", "least_outstanding", "power_of_two")


def chat(n: int = 300, rate: float = 5.0) -> Requests:
    draw = np.random.default_rng(0)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    group = draw.integers(0, 5, n)
    grouping = Grouping(
        prefix_group=group, prefix_tokens=np.full(n, 48), priority=draw.integers(0, 3, n)
    )
    return requests_of(
        arrive_s, draw.integers(50, 1500, n), draw.integers(10, 200, n), grouping=grouping
    )


def ready(requests: Requests, *, tp: int = 1, **scheduler: object):
    plain = {"caches_prefixes": False} | scheduler
    asked = SimulateRequest(tp=tp, n_replicas=2, scheduler=EngineRequest(**plain))  # type: ignore[arg-type]
    return prepared("Llama-3.1-8B", "H100", requests, asked)


def test_stages_share_one_scheduler():
    whole, staged = (
        ready(chat(), max_sequences=64, replica=ReplicaRequest(pp=pp)) for pp in (1, 2)
    )
    assert (whole.fleet.n_engines, staged.fleet.n_engines) == (2, 2)
    assert staged.fleet.limits.max_sequences == whole.fleet.limits.max_sequences
    assert staged.fleet.limits.admission.n_stages == 2
    assert staged.setup.layout.n_accelerators == 2


def test_attention_replicas_have_their_own():
    one, two = (ready(chat(), max_sequences=64, replica=ReplicaRequest(dp=dp)) for dp in (1, 2))
    assert two.fleet.n_engines == 2 * one.fleet.n_engines
    assert two.fleet.limits.max_sequences == one.fleet.limits.max_sequences


@pytest.mark.parametrize("layout", [{"pp": 2}, {"dp": 2}], ids=["pp", "dp"])
def test_paid_time_and_sizes_count_replicas_not_engines(layout: dict[str, int]):
    """A replica of two engines is paid once: its size, its bill and its draw."""
    requests = chat(300, 60.0)
    found = ready(requests, replica=ReplicaRequest(**layout))
    slo = SloTargets(ttft_s=0.3, kept_frac=0.9)
    held = smallest_holding(found, requests, router="least_outstanding", slo=slo)
    for point in held.tried:
        n_engines = point.n_replicas * found.setup.n_engines
        fleet = replace(found.fleet, n_engines=n_engines, router="least_outstanding")
        span_s = simulate_serving(requests, fleet).totals.span_s
        paid_s = span_s * point.n_replicas * found.setup.layout.n_accelerators
        assert point.paid_accelerator_s == pytest.approx(paid_s)


def test_the_draw_is_that_of_the_accelerators():
    requests = chat()
    for layout in ({}, {"pp": 2}, {"dp": 2}):
        scheduler = EngineRequest(replica=ReplicaRequest(**layout), caches_prefixes=False)
        asked = SimulateRequest(tp=1, scheduler=scheduler)
        found = api.simulate("Llama-3.1-8B", "H100", requests, asked)
        assert found.power is not None
        n = found.setup.layout.n_accelerators
        assert found.power.mean_power_w.value <= n * 700.0
        assert found.power.mean_power_w.value > n * 60.0


def test_adapters_cost_time_and_cache():
    requests = chat()
    plain, tuned = (
        ready(requests, replica=ReplicaRequest(adapters=adapters))
        for adapters in (None, LoraUse(rank=64, n_adapters=32))
    )
    assert tuned.fleet.limits.n_blocks < plain.fleet.limits.n_blocks
    slow, fast = (simulate_serving(requests, r.fleet).times.e2e_s.mean() for r in (tuned, plain))
    assert slow > 1.05 * fast


def test_experts_are_dealt_to_the_devices_of_a_replica():
    asked = SimulateRequest(scheduler=EngineRequest(replica=ReplicaRequest(dp=8, ep=8)))
    found = prepared("DeepSeek-V3", "8xH200", chat(), asked)
    assert (found.setup.layout.ep, found.setup.layout.n_accelerators) == (8, 8)
    alone = replace(asked, scheduler=EngineRequest(replica=ReplicaRequest(dp=8)))
    with pytest.raises(InputError, match="leave no room"):
        prepared("DeepSeek-V3", "8xH200", chat(), alone)


def test_accelerators_that_are_named_and_not_used_are_told():
    part, whole = (
        prepared("Llama-3.1-8B", name, chat(), SimulateRequest(tp=2)).assumptions
        for name in ("8xH100", "2xH100")
    )
    told = {a.what: a.value for a in part}
    assert told["accelerators of a replica"] == "2 of the 8 that were named"
    assert "accelerators of a replica" not in {a.what for a in whole}


@pytest.mark.parametrize("router", ["session", "prefix_affinity"])
def test_a_router_that_knows_conversations_finds_what_was_said(router: str):
    """Each talk grows by itself: its own replica keeps it, any other reads it again."""
    draw = np.random.default_rng(1)
    n, n_talks = 410, 41  # no multiple of the replicas, or taking turns would be loyal by chance
    talk = np.arange(n) % n_talks
    turn = np.arange(n) // n_talks
    grouping = Grouping(session=talk, prefix_group=talk, prefix_tokens=300 * turn)
    arrive_s = np.cumsum(draw.exponential(1 / 30, n))
    requests = requests_of(arrive_s, 300 * (turn + 1), np.full(n, 20), grouping=grouping)
    asked = SimulateRequest(n_replicas=4, router=router)
    sticky = api.simulate("Llama-3.1-8B", "H100", requests, asked)
    free = api.simulate("Llama-3.1-8B", "H100", requests, replace(asked, router="round_robin"))
    assert sticky.outcome.totals.n_hit_tokens > free.outcome.totals.n_hit_tokens
    assert sticky.outcome.n_completed == n
    assert sticky.outcome.paid_s == pytest.approx(4 * sticky.outcome.totals.span_s)


@pytest.mark.parametrize("router", ["session", "prefix_affinity"])
def test_a_router_that_finds_nothing_to_know_is_told(router: str):
    requests = requests_of(np.arange(30) * 0.1, np.full(30, 100), np.full(30, 10))
    asked = SimulateRequest(n_replicas=2, router=router)
    found = prepared("Llama-3.1-8B", "H100", requests, asked)
    told = {a.what: a.value for a in found.assumptions}
    assert told[f"router {router}"] == "as least_outstanding"


POLICIES = {
    "prefixes": {"caches_prefixes": True},
    "priority": {"scheduling": "priority"},
    "drafts": {"drafts": SpeculativeDecoding(n_tokens=2, acceptance_frac=0.6)},
    "long": {"long_prefill_tokens": 256},
}


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_behind_every_router(policy: str, router: str):
    """Jumping equals stepping, nothing is lost, and all blocks come back."""
    requests = chat(150, 30.0)
    of = ready(requests, max_sequences=16, n_blocks=400, **POLICIES[policy]).fleet
    fleet = replace(of, n_engines=3, router=router)
    jumped = simulate_serving(requests, fleet)
    stepped = simulate_serving(requests, fleet, method="step")
    assert jumped.times.e2e_s.tobytes() == stepped.times.e2e_s.tobytes()
    assert jumped.n_completed == len(requests)
    assert jumped.totals.n_free_blocks == 3 * 400
    assert (jumped.times.wait_s >= 0).all()
    assert (jumped.times.e2e_s >= jumped.times.ttft_s).all()

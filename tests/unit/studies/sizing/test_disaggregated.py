"""Prefill/decode disaggregation by hand: how many of each role, and what a KV transfer takes."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.plans import pool
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.domain.plan.packing import accelerators_for, nodes_for
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.studies.inference.disaggregation import CONNECTOR_S, kv_transfer
from gpuplan.studies.planning.chosen import by_role
from gpuplan.studies.planning.inputs import plan_inputs
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.disaggregated import balanced, split_candidates, whole_fleets
from gpuplan.studies.sizing.task import task_of

SCENARIO = """
version: 1
name: long-prompts
workloads:
  - name: assistant
    kind: online_inference
    model: meta-llama/Llama-3.3-70B-Instruct
    precision: fp8
    demand: {requests_per_s: 12}
    request: {input_tokens: 6000, output_tokens: 300}
    slo: {ttft_p95_ms: 2500, tpot_p95_ms: 30}
prices:
  offers:
    - {name: node, accelerator: h100-sxm, accelerators_per_node: 8, usd_per_node_h: 24%s}
policy: {accelerators: {allowed: [h100-sxm]}, disaggregation: %s}
"""
FABRIC = ", network_gbit_per_s: 3200"


def task(tmp_path, network=FABRIC, policy="allowed", today=None):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO % (network, policy))
    inputs = plan_inputs(
        PlanRequest(target=str(path), today=today or np.datetime64("2026-11-16").item())
    )
    return task_of(inputs.scenario.workloads[0], inputs.scenario, inputs.around)


def groups(found):
    kept = candidates_of(found)[0].accepted
    return list(split_candidates(found, ("h100-sxm", "fp8"), kept))


def test_roles_follow_the_token_balance():
    # 12 prompts/s at 3.4 and 7.7 a second of an engine, 80 and 60 % of it used.
    assert whole_fleets(12.0, 3.4, 7.7) == [(5, 2), (5, 3), (6, 2), (6, 3)]
    # As quick at prompts as at responses: one of each; decode four times quicker: four prefill.
    assert balanced(2.0, 2.0) == [(1, 1)]
    assert balanced(1.0, 4.0)[0] == (4, 1)
    assert balanced(4.0, 1.0)[0] == (1, 4)


def test_a_kv_cache_travels_over_its_share_of_the_nics(tmp_path):
    found = task(tmp_path)
    base = next(c for c in candidates_of(found)[0].accepted if c.layout.tp == 4)
    spread = replace(base.layout, n_prefill=5, n_decode=3, network_bytes_per_s=400e9)
    sent = kv_transfer(found.evaluator.setup(base), spread)
    # 80 layers of 8 heads of 128, keys and values in 2 bytes.
    assert sent.cache_bytes_per_token == 80 * 8 * 128 * 2 * 2
    # Four of eight accelerators have half of 3,200 Gbit/s, less what protocols take.
    assert 0.7 * 200e9 < sent.link_bytes_per_s <= 200e9
    assert sent.latency_s >= CONNECTOR_S
    one = found.evaluator.prepared(replace(base, layout=spread))
    least_s = 6000 * sent.cache_bytes_per_token / 200e9
    assert least_s < one.transfer_s < 3 * least_s + CONNECTOR_S + one.alone_s
    idle = found.evaluator.idle_times(replace(base, layout=spread))
    assert idle.ttft_s == pytest.approx(one.start_s + one.prompt_s + one.transfer_s)


def test_the_slower_role_bounds_the_group(tmp_path):
    found = task(tmp_path)
    base = next(c for c in candidates_of(found)[0].accepted if c.layout.tp == 4)
    one, two = (
        found.evaluator.prepared(
            replace(
                base, layout=replace(base.layout, n_prefill=n, n_decode=8, network_bytes_per_s=4e11)
            )
        )
        for n in (1, 2)
    )
    assert one.capacity_per_s() == pytest.approx(one.prefill_per_s)
    assert two.capacity_per_s() == pytest.approx(2 * one.prefill_per_s)
    assert one.prefill_per_s * 6000 * 2 * 70e9 < 4 * 1979e12, "no faster than the peak"


def test_without_a_network_groups_stay_inside_one_server(tmp_path):
    inside = [each for each in groups(task(tmp_path, network="")) if not hasattr(each, "reason")]
    assert all(each.n_accelerators <= 8 for each in inside)
    assert all(each.layout.network_bytes_per_s is None for each in inside)
    over = groups(task(tmp_path))
    assert {each.layout.network_bytes_per_s for each in over} == {400e9}
    assert groups(task(tmp_path, policy="never")) == []


def test_engines_of_a_group_fill_servers_one_by_one(tmp_path):
    found = task(tmp_path)
    base = next(c for c in candidates_of(found)[0].accepted if c.layout.tp == 2)
    group = replace(
        base, layout=replace(base.layout, n_prefill=3, n_decode=2, network_bytes_per_s=4e11)
    )
    # 2 groups of 5 engines of 2 accelerators: 20 accelerators in 3 servers of 8.
    assert nodes_for(group, 2, 8) == 3
    assert accelerators_for(group, 2, 8) == 20
    assert group.layout.name == "3P2D TP2"
    assert group.layout.engine == ServingLayout(tp=2)


def test_pools_by_role_are_one_group_again(tmp_path):
    found = task(tmp_path)
    base = next(c for c in candidates_of(found)[0].accepted if c.layout.tp == 2)
    layout = PoolLayout(tp=2, pp=1, n_prefill=3, n_decode=2, network_bytes_per_s=4e11)
    whole = replace(pool(), n_replicas=3, n_spare_replicas=1, n_accelerators=32, layout=layout)
    candidate = replace(base, layout=layout.spread)
    prefill, decode = by_role(whole, candidate)
    assert (prefill.layout.role, prefill.n_replicas, prefill.n_spare_replicas) == ("prefill", 9, 3)
    assert (decode.layout.role, decode.n_replicas, decode.n_spare_replicas) == ("decode", 6, 2)
    assert prefill.n_accelerators + decode.n_accelerators == 32
    assert decode.purchases == ()
    [again] = merged([prefill, decode])
    assert again.layout.spread == layout.spread
    assert (again.n_replicas, again.n_spare_replicas) == (3, 1)
    assert merged([prefill]) == (prefill,)

"""Replicas fill whole nodes; none is cut across two unless it is larger than one."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import AcceleratorShare, Candidate
from gpuplan.domain.plan.packing import accelerators_for, nodes_for


def candidate(tp: int = 1, pp: int = 1, **rest) -> Candidate:
    return Candidate(
        workload="w", accelerator=AcceleratorId("h100-sxm"), precision="fp8",
        layout=ServingLayout(tp=tp, pp=pp), **rest,
    )  # fmt: skip


SEVENTH = AcceleratorShare(
    kind="mig", name="1g", n_per_accelerator=7, compute_frac=1 / 7, memory_bytes=1e10
)


def test_two_ways_in_nodes_of_eight():
    assert nodes_for(candidate(tp=2), 4, 8) == 1
    assert nodes_for(candidate(tp=2), 5, 8) == 2
    assert accelerators_for(candidate(tp=2), 5, 8) == 10


def test_what_does_not_divide_loses_the_rest():
    assert nodes_for(candidate(tp=3), 3, 8) == 2
    assert accelerators_for(candidate(tp=3), 3, 8) == 16


def test_tensor_groups_stay_inside_nodes():
    assert nodes_for(candidate(tp=8), 1, 4) is None
    assert nodes_for(candidate(tp=4, pp=4), 1, 8) == 2
    assert nodes_for(candidate(tp=3, pp=4), 1, 8) is None
    assert accelerators_for(candidate(tp=8), 1, 4) is None


def test_a_served_replica_spans_nodes_only_over_the_network_it_was_judged_with():
    engine = EngineChoice(name="vllm", version="0.15")
    inside = candidate(tp=4, pp=4, engine=engine)
    assert nodes_for(inside, 2, 16) == 2
    assert nodes_for(inside, 1, 8) is None
    joined = replace(inside, layout=replace(inside.layout, network_bytes_per_s=50e9))
    assert nodes_for(joined, 1, 8) == 2
    assert nodes_for(joined, 1, 2) is None
    experts = replace(joined, layout=ServingLayout(dp=8, ep=8))
    assert nodes_for(experts, 1, 8) == 1
    assert nodes_for(experts, 1, 4) is None
    over = replace(joined, layout=ServingLayout(tp=2, dp=4, ep=8, network_bytes_per_s=50e9))
    assert nodes_for(over, 1, 4) == 2
    assert nodes_for(over, 1, 1) is None


def test_parts_of_an_accelerator_share_it():
    assert accelerators_for(candidate(share=SEVENTH), 8, 8) == 2
    assert nodes_for(candidate(share=SEVENTH), 57, 8) == 2


def test_a_node_is_a_node():
    assert nodes_for(candidate(is_node=True, offer="cpu-16"), 3, 1) == 3


@given(st.sampled_from([1, 2, 4, 8]), st.integers(0, 60), st.sampled_from([1, 2, 4, 8]))
def test_enough_and_never_too_many(tp, n, size):
    nodes = nodes_for(candidate(tp=tp), n, size)
    if tp > size:
        assert nodes is None or n == 0
        return
    assert nodes * size >= n * tp
    assert (nodes - 1) * size < n * tp or n == 0


@given(st.sampled_from([1, 2, 3, 4, 5]), st.integers(0, 40), st.sampled_from([4, 8]))
def test_more_replicas_never_take_fewer_nodes(tp, n, size):
    now, more = (nodes_for(candidate(tp=tp), k, size) for k in (n, n + 1))
    assert (now is None) or (more is None) or more >= now

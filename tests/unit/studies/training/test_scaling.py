"""Speed-up curves: the fine-tune that does not scale, its knee, its causes and its remedies."""

from dataclasses import replace

import pytest

from gpuplan.domain.training.scaling import NodeLinks, ScaleLayout, ScalePoint, ScaleRequest
from gpuplan.errors import InputError
from gpuplan.studies.training.scaling import knee, scale
from gpuplan.units import GBIT

SLOW = ScaleRequest(
    model="Llama-3.1-8B",
    accelerator="H100",
    counts=(8, 16, 32, 64),
    mfu_frac=0.45,
    links=NodeLinks(adapters_bytes_per_s=100 * GBIT),
    price_usd_per_h=2.95,
)


def with_adapters(gbit: float) -> ScaleRequest:
    return replace(SLOW, links=replace(SLOW.links, adapters_bytes_per_s=gbit * GBIT))


def test_eight_nodes_on_one_slow_adapter_each():
    found = scale(SLOW)
    last = found.points[-1]
    assert last.compute_s == pytest.approx(1.18, abs=0.01)
    assert last.efficiency_frac == pytest.approx(0.30, abs=0.02)
    assert last.speedup_ratio == pytest.approx(2.4, abs=0.15)
    assert last.cause == "data parallel"
    assert found.states_bytes == pytest.approx(128.5e9, rel=0.01)


def test_faster_adapters_keep_the_efficiency():
    assert scale(with_adapters(400)).points[-1].efficiency_frac >= 0.9
    assert scale(with_adapters(3200)).points[-1].efficiency_frac >= 0.9
    assert scale(with_adapters(3200)).remedies == ()


def test_layout_and_adapters_come_before_more_accelerators():
    found = scale(SLOW)
    assert found.knee == 8
    remedies = {remedy.what: remedy.efficiency_frac for remedy in found.remedies}
    hybrid = next(value for what, value in remedies.items() if "hybrid sharding" in what)
    assert hybrid == pytest.approx(0.86, abs=0.01)
    assert any("NICs" in what for what in remedies)


def test_the_price_of_a_percent_rises_where_the_curve_bends():
    slow, quick = scale(SLOW).points[-1], scale(with_adapters(3200)).points[-1]
    assert slow.usd_per_percent > 2 * quick.usd_per_percent
    assert quick.usd_per_percent == pytest.approx(32 * 2.95 / 400, rel=0.01)
    assert scale(SLOW).points[0].usd_per_percent is None


def test_without_a_utilization_the_calibrated_model_answers():
    found = scale(replace(with_adapters(3200), mfu_frac=None))
    speeds = [point.speedup_ratio for point in found.points]
    assert speeds[0] == 1
    assert speeds == sorted(speeds)
    assert all(0 < point.efficiency_frac <= 1 for point in found.points)
    assert "software" in {told.what for told in found.assumptions}


def test_knee_is_where_a_doubling_brings_less_than_half():
    def point(n: int, speedup: float) -> ScalePoint:
        return ScalePoint(
            n_accelerators=n, step_s=1.0, compute_s=1.0, speedup_ratio=speedup,
            efficiency_frac=speedup / n * 8, cause="", causes_s=(), usd_per_percent=None,
        )  # fmt: skip

    assert knee([point(8, 1), point(16, 1.9), point(32, 3.0), point(64, 3.6)]) == 32
    assert knee([point(8, 1)]) == 8


def test_broken_nodes_and_impossible_utilization_are_refused_together():
    with pytest.raises(InputError) as caught:
        scale(replace(SLOW, counts=(8, 12, 0), mfu_frac=1.2))
    assert len(caught.value.problems) == 3


def test_tensor_parallelism_stays_inside_the_node_unless_asked():
    wide = replace(SLOW, counts=(16, 64), mfu_frac=None, layout=ScaleLayout(tp=16))
    with pytest.raises(InputError) as caught:
        scale(wide)
    assert "leaves the node" in str(caught.value)
    allowed = scale(replace(wide, layout=ScaleLayout(tp=16, allows_tp_across_nodes=True)))
    assert allowed.points[0].step_s > 10 * allowed.points[0].compute_s
    assert allowed.points[0].cause == "tensor parallel"


def test_tensor_parallel_ranks_share_the_given_work():
    one = scale(SLOW).points[0]
    two = scale(replace(SLOW, layout=ScaleLayout(tp=2))).points[0]
    assert two.compute_s == pytest.approx(one.compute_s / 2)


def test_the_fabric_in_words_is_the_one_that_predict_training_reads():
    by_rate = scale(replace(SLOW, links=NodeLinks(adapters_bytes_per_s=3200 * GBIT, fabric="EFA")))
    in_words = scale(replace(SLOW, links=NodeLinks(fabric="3200 Gbit/s EFA per node")))
    assert in_words.points == by_rate.points
    usual = replace(SLOW, links=NodeLinks(), accelerator="A100")
    [assumed] = [a for a in scale(usual).assumptions if a.what == "network between servers"]
    assert assumed.value == "200 Gbit/s per accelerator"
    tcp = scale(replace(SLOW, links=replace(SLOW.links, fabric="TCP"))).points[-1]
    assert tcp.efficiency_frac < scale(SLOW).points[-1].efficiency_frac


@pytest.mark.parametrize(
    "links",
    [NodeLinks(fabric="fast"), NodeLinks(fabric="1 GbE per node", adapters_bytes_per_s=1e9)],
)
def test_a_fabric_that_says_nothing_or_twice_is_an_error(links):
    with pytest.raises(InputError, match="fabric"):
        scale(replace(SLOW, links=links))


def test_counts_that_cannot_hold_the_states_are_named():
    """70.6 B parameters x 16 bytes: 141 GB each on 8; a hybrid keeps them in every node."""
    large = replace(SLOW, model="Llama-3.1-70B", counts=(8, 16, 64))
    told = {a.what: a.value for a in scale(large).assumptions}
    assert told["memory of 8 accelerators"].startswith("too small: 141 GB")
    hybrid = replace(large, layout=replace(large.layout, is_hybrid=True))
    assert any(a.what == "memory of 8, 16, 64 accelerators" for a in scale(hybrid).assumptions)
    assert not any(a.what.startswith("memory") for a in scale(SLOW).assumptions)


def test_one_number_is_the_largest_of_doublings():
    curve = scale(replace(SLOW, counts=(96,)))
    assert [point.n_accelerators for point in curve.points] == [8, 16, 32, 64, 96]

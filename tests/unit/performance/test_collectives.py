"""Collectives against the closed forms of textbooks and the definitions of nccl-tests."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.links import PLAIN, plain_link, rich_link
from gpuplan.calibration.links import fabric_link, host_bus_of, link_classes, link_of
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.links import SwitchReduction
from gpuplan.errors import InputError
from gpuplan.performance import collectives as c
from gpuplan.units import GB, GIB, MIB


def accelerator(name: str) -> Accelerator:
    return find_accelerator(name, read_catalog()).accelerator


def busbw(message_bytes: float, n: int, seconds: float) -> float:
    return 2 * (n - 1) / n * message_bytes / seconds


def test_ring_all_reduce_is_thakurs() -> None:
    expected = 2 * 7 * (1e-6 + 1e9 / 8 / 100e9)
    assert c.all_reduce_time_s(1e9, 8, plain_link()) == pytest.approx(expected)


def test_all_gather_and_reduce_scatter_make_an_all_reduce() -> None:
    link = plain_link()
    parts = c.all_gather_time_s(1e9, 8, link) + c.all_gather_time_s(1e9, 8, link)
    assert parts == pytest.approx(c.all_reduce_time_s(1e9, 8, link))


def test_all_to_all_pays_latency_once() -> None:
    assert c.all_to_all_time_s(8e8, 8, plain_link()) == pytest.approx(1e-6 + 7e8 / 100e9)


def test_point_to_point_is_latency_and_bytes() -> None:
    assert c.point_to_point_time_s(1e9, plain_link()) == pytest.approx(1e-6 + 0.01)


def test_one_rank_needs_nothing() -> None:
    for time_s in (c.all_reduce_time_s, c.all_gather_time_s, c.all_to_all_time_s):
        assert time_s(1e9, 1, rich_link()) == 0.0


def test_no_ranks_is_refused() -> None:
    with pytest.raises(InputError, match="1 or more"):
        c.all_reduce_time_s(1.0, 0, plain_link())


def test_small_messages_take_the_direct_kernel_and_large_ones_the_switch() -> None:
    terms = c.all_reduce_terms(8, rich_link())
    small = {name: c.curve_time_s(8192.0, curve) for name, curve in terms._asdict().items()}
    large = {name: c.curve_time_s(4e9, curve) for name, curve in terms._asdict().items()}
    assert min(small, key=small.__getitem__) == "one_shot"
    assert min(large, key=large.__getitem__) == "switch"


def test_trees_win_on_many_ranks_and_small_messages() -> None:
    tree = replace(plain_link(), has_tree=True)
    assert c.all_reduce_time_s(1024.0, 256, tree) < 0.1 * c.all_reduce_time_s(
        1024.0, 256, plain_link()
    )
    ring_s = c.all_reduce_time_s(1e9, 4, plain_link())
    assert c.all_reduce_time_s(1e9, 4, tree) == pytest.approx(ring_s)


def test_switch_reduction_may_exceed_the_line_rate_in_busbw() -> None:
    """busbw counts what a ring would carry; a switch carries (n+1)/2(n-1) of that."""
    link = replace(plain_link(), switch=SwitchReduction(rate_frac=1.0, extra_s=0.0, n_ranks_min=2))
    seconds = c.all_reduce_time_s(64 * GIB, 8, link)
    assert busbw(64 * GIB, 8, seconds) == pytest.approx(100e9 * 14 / 9, rel=1e-3)
    assert 64 * GIB / seconds < link.bytes_per_s  # algbw never does


def test_mesh_gives_a_pair_only_its_own_link() -> None:
    """Eight of a full mesh use seven links each, two use one [measured:rccl-mi300x]."""
    link = link_of(accelerator("mi300x"), n_ranks=8)
    two = busbw(8 * GIB, 2, c.all_reduce_time_s(8 * GIB, 2, link))
    eight = busbw(8 * GIB, 8, c.all_reduce_time_s(8 * GIB, 8, link))
    assert two == pytest.approx(47.7 * GB, rel=0.15)
    assert eight == pytest.approx(312.9 * GB, rel=0.15)


def test_without_peer_to_peer_is_slower() -> None:
    card = accelerator("rtx-4090")
    staged = c.all_reduce_time_s(64 * MIB, 2, host_bus_of(card))
    assert staged > 1.5 * c.all_reduce_time_s(
        64 * MIB, 2, host_bus_of(replace(card, name="RTX 6000"))
    )
    assert host_bus_of(card).name == "pcie-host"


def test_bridge_joins_two_and_the_bus_joins_four() -> None:
    card = accelerator("a100-pcie-80gb")
    assert link_of(card, n_ranks=2).name == "nvlink-bridge"
    assert link_of(card, n_ranks=4).name == "pcie"


@pytest.mark.parametrize("engine", ["", "vllm", "sglang", "tensorrt-llm", "never heard of"])
def test_every_accelerator_has_a_link(engine: str) -> None:
    for card in read_catalog().accelerators.values():
        link = link_of(card, n_ranks=8, engine=engine)
        assert link.name in link_classes()
        assert 0 < c.all_reduce_time_s(1e6, 8, link) < 1


def test_fabric_refuses_nonsense() -> None:
    with pytest.raises(InputError, match="infiniband"):
        fabric_link(50 * GB, fabric="carrier pigeon")
    with pytest.raises(InputError, match="positive"):
        fabric_link(0.0)


def test_hierarchy_runs_at_the_pace_of_its_slower_level() -> None:
    inner, outer = plain_link(400e9), plain_link(50e9)
    seconds = c.hierarchical_time_s(c.all_reduce_time_s, 8e9, (8, inner), (4, outer))
    assert seconds == pytest.approx(c.all_reduce_time_s(8e9, 4, outer), rel=1e-3)
    one_node = c.hierarchical_time_s(c.all_reduce_time_s, 8e9, (8, inner), (1, outer))
    assert one_node == pytest.approx(c.all_reduce_time_s(8e9, 8, inner))


def test_columns_equal_scalars() -> None:
    terms = c.all_reduce_terms(8, rich_link())
    sizes = np.geomspace(128, 1e10, 60)
    columns = c.quickest_time_s(sizes, terms)  # type: ignore[arg-type]
    assert columns == pytest.approx([c.quickest_time_s(float(m), terms) for m in sizes], rel=1e-12)


def test_protocol_overheads_are_paid_once() -> None:
    link = replace(plain_link(), ring=replace(PLAIN, launch_s=7e-6, ramp_s=3e-5, ramp_bytes=1.0))
    assert c.all_gather_time_s(1e9, 8, link) - c.all_gather_time_s(
        1e9, 8, plain_link()
    ) == pytest.approx(37e-6, rel=1e-3)

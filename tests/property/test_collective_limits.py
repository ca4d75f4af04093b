"""Collectives never beat their link, and never get slower for having more of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.links import rich_link
from gpuplan.calibration.links import link_of
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.links import LinkModel, Protocol
from gpuplan.performance import collectives as c

TIMES = (c.all_reduce_time_s, c.all_gather_time_s, c.all_to_all_time_s)
SIZES = st.floats(1.0, 1e12)
RANKS = st.integers(2, 1024)
CARDS = st.sampled_from(sorted(read_catalog().accelerators))
TIME = st.sampled_from(TIMES)


@given(card=CARDS, size=SIZES, n=RANKS)
def test_no_collective_beats_the_line(card: str, size: float, n: int) -> None:
    """A rank must at least send what leaves it: (n-1)/n of the message, once."""
    link = link_of(read_catalog().accelerators[card], n_ranks=n)  # type: ignore[index]
    least_s = size * (n - 1) / n / link.bytes_per_s
    for time_s in TIMES:
        assert time_s(size, n, link) >= least_s * (1 - 1e-9)
    assert c.point_to_point_time_s(size, link) >= size / link.bytes_per_s * (1 - 1e-9)


@given(time_s=TIME, size=SIZES, n=RANKS, more=st.floats(1.0, 100.0))
def test_more_bandwidth_is_never_slower(time_s, size: float, n: int, more: float) -> None:
    quick = time_s(size, n, rich_link(450e9 * more))
    assert quick <= time_s(size, n, rich_link(450e9)) * (1 + 1e-9)


@given(card=CARDS, time_s=TIME, size=SIZES, n=RANKS, more=st.floats(1.0, 100.0))
def test_a_larger_message_is_never_quicker(
    card: str, time_s, size: float, n: int, more: float
) -> None:
    link = link_of(read_catalog().accelerators[card], n_ranks=n)  # type: ignore[index]
    assert time_s(size * more, n, link) >= time_s(size, n, link) * (1 - 1e-9)


@given(size=SIZES, n=RANKS)
def test_an_added_algorithm_never_hurts(size: float, n: int) -> None:
    full = rich_link()
    for without in (
        replace(full, switch=None),
        replace(full, direct=None),
        replace(full, has_tree=False),
    ):
        slower = c.all_reduce_time_s(size, n, without) * (1 + 1e-9)
        assert c.all_reduce_time_s(size, n, full) <= slower


def _resized(link: LinkModel, second: float, byte: float) -> LinkModel:
    def protocol(p: Protocol) -> Protocol:
        return replace(
            p,
            launch_s=p.launch_s * second,
            alpha_s=p.alpha_s * second,
            ramp_s=p.ramp_s * second,
            ramp_bytes=p.ramp_bytes * byte,
        )

    assert link.switch is not None
    assert link.direct is not None
    return replace(
        link,
        bytes_per_s=link.bytes_per_s * byte / second,
        ring=protocol(link.ring),
        pairwise=protocol(link.pairwise),
        switch=replace(link.switch, extra_s=link.switch.extra_s * second),
        direct=replace(
            link.direct,
            launch_s=link.direct.launch_s * second,
            sync_s=link.direct.sync_s * second,
        ),
    )


@given(time_s=TIME, size=SIZES, n=RANKS, second=st.floats(1e-3, 1e3), byte=st.floats(1e-3, 1e3))
def test_a_collective_takes_time(time_s, size: float, n: int, second: float, byte: float) -> None:
    resized = time_s(size * byte, n, _resized(rich_link(), second, byte))
    # The ramp of an absent term is one byte wide and weighs nothing.
    assert resized == pytest.approx(second * time_s(size, n, rich_link()), rel=1e-6)


@given(size=SIZES, nodes=st.integers(1, 64), per_node=st.integers(1, 16))
def test_hierarchy_is_no_quicker_than_either_level(size: float, nodes: int, per_node: int) -> None:
    inner, outer = rich_link(450e9), rich_link(50e9)
    whole = c.hierarchical_time_s(c.all_reduce_time_s, size, (per_node, inner), (nodes, outer))
    assert whole >= c.all_reduce_time_s(size, nodes, outer) * (1 - 1e-9)
    assert whole >= c.all_reduce_time_s(size, per_node, inner) * (1 - 1e-9)

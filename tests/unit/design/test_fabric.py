"""Fabrics: counts of the published designs, and what any folded Clos must keep."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.design.fabric import fabric_counts
from gpuplan.errors import InputError
from shared_data import shared_file


def published() -> list[dict[str, str]]:
    with shared_file("catalog/superpod_counts.csv").open() as file:
        return list(csv.DictReader(file))


KINDS = {
    "DGX H100": "rail-optimised",
    "DGX B200": "rail-optimised",
    "DGX B300 Ethernet": "rail planes",
    "DGX B300 XDR": "rail-optimised",
}
PORTS = {"QM9700 64x400G": 64, "64-port 800G class": 64, "Q3400 144x800G": 144}


def test_counts_agree_with_published_designs():
    rows = published()
    assert len(rows) >= 20
    for row in rows:
        kind = next(kind for name, kind in KINDS.items() if row["architecture"].startswith(name))
        n_nodes, n_cables = int(row["nodes"]), int(row["node_leaf_cables"])
        # Smaller published systems give one node's place to the fabric's manager.
        made = fabric_counts(
            n_nodes,
            8,
            n_switch_ports=PORTS[row["switch"]],
            kind=kind,
            n_manager_cables=n_cables - 8 * n_nodes,
        )
        assert n_cables - 8 * n_nodes in (0, 4)
        counts = (made.n_leaf, made.n_spine, made.n_core, made.n_leaf_cables, made.n_spine_cables)
        wanted = (
            row[key] or 0
            for key in ("leaf", "spine", "core", "leaf_spine_cables", "spine_core_cables")
        )
        assert counts == tuple(map(int, wanted)), row
        assert made.n_node_cables == n_cables


@pytest.mark.parametrize(
    ("n_nodes", "kind", "leaf", "spine", "core"),
    [
        (32, "rail-optimised", 8, 4, 0),
        (96, "rail-optimised", 24, 16, 0),  # 12 spines would share 32 uplinks unevenly
        (256, "rail-optimised", 64, 32, 0),
        (512, "rail-optimised", 128, 128, 64),
        (512, "rail planes", 128, 64, 0),
    ],
)
def test_units_of_32_nodes(n_nodes, kind, leaf, spine, core):
    made = fabric_counts(n_nodes, 8, n_switch_ports=64, kind=kind)
    assert (made.n_leaf, made.n_spine, made.n_core) == (leaf, spine, core)


def test_the_largest_fabrics_split_into_planes():
    assert fabric_counts(10_000, 8, n_switch_ports=64).kind == "rail planes"
    with pytest.raises(InputError):
        fabric_counts(70_000, 1, n_switch_ports=64)


def test_few_nodes_need_one_switch():
    assert fabric_counts(8, 8, n_switch_ports=64).kind == "one switch"
    assert fabric_counts(9, 8, n_switch_ports=64).n_switches > 1


def test_sixteen_nodes_need_fewer_switches_without_rails():
    made = fabric_counts(16, 8, n_switch_ports=64)
    assert (made.kind, made.n_leaf, made.n_spine) == ("fat tree", 4, 2)


@given(
    st.integers(1, 900),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([32, 64, 128]),
    st.sampled_from([1.0, 1.5, 2.0, 3.0]),
)
def test_no_switch_has_more_cables_than_ports(n_nodes, n_ports, n_switch_ports, ratio):
    try:
        made = fabric_counts(
            n_nodes, n_ports, n_switch_ports=n_switch_ports, oversubscription_ratio=ratio
        )
    except InputError:
        assert n_nodes * n_ports > n_switch_ports**2 / 4
        return
    assert made.n_node_cables == n_nodes * n_ports
    assert made.n_node_cables + made.n_leaf_cables <= made.n_leaf * n_switch_ports
    assert made.n_leaf_cables + made.n_spine_cables <= made.n_spine * n_switch_ports
    assert made.n_spine_cables <= made.n_core * n_switch_ports
    assert made.oversubscription_ratio <= ratio + 0.2
    if made.n_spine:
        # Uplinks carry what comes from below, but for the ratio that was asked for.
        assert made.n_leaf_cables * made.oversubscription_ratio >= made.n_node_cables * 0.99


@given(st.integers(1, 500), st.floats(1, 4))
def test_a_narrower_fabric_never_needs_more_switches(n_nodes, ratio):
    full = fabric_counts(n_nodes, 8, n_switch_ports=64)
    narrow = fabric_counts(n_nodes, 8, n_switch_ports=64, oversubscription_ratio=ratio)
    assert narrow.n_switches <= full.n_switches


def test_nonsense_is_refused_at_once():
    with pytest.raises(InputError) as caught:
        fabric_counts(0, 8, n_switch_ports=2, oversubscription_ratio=0.5)
    assert len(caught.value.problems) == 3

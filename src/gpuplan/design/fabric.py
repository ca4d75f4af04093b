"""The fabric that joins nodes: switches and cables of each level.

Rail-optimised: NIC i of every node goes to leaf i of its group, so that accelerators of equal rank
are one hop apart. Leaves and spines form a folded Clos; every leaf has as many links to each spine,
which rounds the number of spines up. Counts agree with published designs
[dgx-superpod-h100-ra, dgx-superpod-b300-ra].
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, floor
from typing import NamedTuple

from gpuplan.domain.system.parts import FabricCounts, FabricKind
from gpuplan.errors import InputError, Problem


def fabric_counts(
    n_nodes: int,
    n_ports_per_node: int,
    *,
    n_switch_ports: int,
    oversubscription_ratio: float = 1.0,
    kind: FabricKind | None = None,
    n_manager_cables: int = 0,
) -> FabricCounts:
    """Switches and cables for so many nodes; without a kind, the one with fewest switches.

    Rail planes keep a spine layer for each rail: traffic between rails crosses inside a node.
    """
    _check(n_nodes, n_ports_per_node, n_switch_ports, oversubscription_ratio)
    ends = FabricCounts(
        kind="one switch",
        n_nodes=n_nodes,
        n_ports_per_node=n_ports_per_node,
        n_leaf=1,
        n_node_cables=n_nodes * n_ports_per_node + n_manager_cables,
    )

    def best(which: FabricKind) -> Iterator[FabricCounts]:
        wanted = replace(ends, kind=which)
        found = _layouts(wanted, n_switch_ports, oversubscription_ratio)
        least = min(found, key=lambda layout: layout.rank, default=None)
        yield from () if least is None else (_counts(wanted, least),)

    kinds: tuple[FabricKind, ...] = ("one switch", "rail-optimised", "fat tree")
    found = [counts for which in ((kind,) if kind else kinds) for counts in best(which)]
    if not found and kind is None:
        found = list(best("rail planes"))  # the largest fabrics keep a spine layer for each rail
    if not found:
        what = f"{n_nodes} nodes with {n_ports_per_node} ports do not fit three levels"
        fix = f"switches with more than {n_switch_ports} ports, or rail planes"
        raise InputError("fabric", [Problem("network", what, fix)])
    return min(found, key=lambda counts: (counts.n_switches, counts.n_cables))


def _check(n_nodes: int, n_ports: int, n_switch_ports: int, ratio: float) -> None:
    rules = (
        ("nodes", n_nodes, n_nodes >= 1, "use at least 1"),
        ("ports", n_ports, n_ports >= 1, "use at least 1"),
        ("switch ports", n_switch_ports, n_switch_ports >= 4, "use at least 4"),
        ("oversubscription", ratio, ratio >= 1, "1 is non-blocking; use 1 or more"),
    )
    problems = [Problem(name, f"got {value}", fix) for name, value, good, fix in rules if not good]
    if problems:
        raise InputError("fabric", problems)


class _Layout(NamedTuple):
    """Switches by level, and the ports of a leaf that go down and up."""

    n_leaf: int
    n_spine: int
    n_core: int
    n_down: int
    n_up: int

    @property
    def rank(self) -> tuple[int, float]:
        """Fewest switches first, then least oversubscribed."""
        return self.n_leaf + self.n_spine + self.n_core, self.n_down / self.n_up


def _layouts(ends: FabricCounts, n_switch_ports: int, ratio: float) -> Iterator[_Layout]:
    """Fabrics of this kind within the ratio, of at most three levels."""
    n_ends, n_rails = ends.n_node_cables, ends.n_ports_per_node
    if ends.kind == "one switch":
        yield from (_Layout(1, 0, 0, 1, 1),) if n_ends <= n_switch_ports else ()
        return
    is_tree = ends.kind == "fat tree"
    n_planes = n_rails if ends.kind == "rail planes" else 1
    most = floor(n_switch_ports * ratio / (1.0 + ratio) * (1 + 1e-9))
    for n_down in range(most, n_switch_ports // 2 - 1, -1):
        n_leaf = ceil(n_ends / n_down) if is_tree else ceil(ends.n_nodes / n_down) * n_rails
        for n_up in range(ceil(n_down / ratio * (1 - 1e-9)), n_switch_ports - n_down + 1):
            levels = _levels(n_leaf // n_planes, n_up, n_switch_ports=n_switch_ports)
            if levels is not None:
                yield _Layout(n_leaf, levels[0] * n_planes, levels[1] * n_planes, n_down, n_up)


def _counts(ends: FabricCounts, layout: _Layout) -> FabricCounts:
    """The fabric with its cables."""
    n_links = layout.n_leaf * layout.n_up
    return replace(
        ends,
        n_leaf=layout.n_leaf,
        n_spine=layout.n_spine,
        n_core=layout.n_core,
        n_leaf_cables=n_links if layout.n_spine else 0,
        n_spine_cables=n_links if layout.n_core else 0,
        oversubscription_ratio=layout.n_down / layout.n_up,
    )


def _levels(n_leaf: int, n_up: int, *, n_switch_ports: int) -> tuple[int, int] | None:
    """Spines and cores above so many leaves; None where three levels are not enough."""
    if n_leaf == 1:
        return 0, 0
    if n_leaf <= n_switch_ports:
        least = ceil(n_leaf * n_up / n_switch_ports)
        # Spines share a leaf's uplinks evenly: the first divisor that is large enough.
        return next(n for n in range(least, n_up + 1) if n_up % n == 0), 0
    # Pods: as many spines as half of their ports reach, the other half goes up to the core.
    half = n_switch_ports // 2
    n_spine = ceil(n_leaf * n_up / half)
    n_core = ceil(n_spine * half / n_switch_ports)
    return (n_spine, n_core) if ceil(n_leaf / half) <= n_switch_ports else None

"""A network that joins nodes, in: nodes, ports, switches; out: switches and cables of each level.

Rail-optimised: port i of every node goes to leaf i of its group, so that accelerators of equal
place are one hop apart. Leaves and spines form a folded Clos; every leaf has as many links to each
spine, which rounds the number of spines up. Counts agree with published designs
[dgx-superpod-h100-ra, dgx-superpod-b300-ra].
"""

from math import ceil, floor

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
    kinds: tuple[FabricKind, ...] = (
        (kind,) if kind else ("one switch", "rail-optimised", "fat tree")
    )
    built = [
        _build(
            which,
            n_nodes,
            n_ports_per_node,
            n_switch_ports=n_switch_ports,
            ratio=oversubscription_ratio,
            n_extra=n_manager_cables,
        )
        for which in kinds
    ]
    found = [counts for counts in built if counts is not None]
    if not found and kind is None:
        # The largest fabrics keep a spine layer for each rail.
        return fabric_counts(
            n_nodes,
            n_ports_per_node,
            n_switch_ports=n_switch_ports,
            kind="rail planes",
            oversubscription_ratio=oversubscription_ratio,
        )
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
        ("oversubscription", ratio, ratio >= 1, "1 does not block; use 1 or more"),
    )
    problems = [
        Problem(name, f"got {value}", fix) for name, value, is_good, fix in rules if not is_good
    ]
    if problems:
        raise InputError("fabric", problems)


def _build(
    kind: FabricKind, n_nodes: int, n_ports: int, *, n_switch_ports: int, ratio: float, n_extra: int
) -> FabricCounts | None:
    """The fabric with fewest switches within the ratio; None where three levels do not do."""
    n_ends = n_nodes * n_ports + n_extra
    if kind == "one switch":
        return _one(n_nodes, n_ports, n_ends) if n_ends <= n_switch_ports else None
    most = floor(n_switch_ports * ratio / (1.0 + ratio) * (1 + 1e-9))
    tried = (
        _clos(
            kind,
            n_nodes,
            n_ports,
            n_switch_ports=n_switch_ports,
            ports=(n_down, n_up),
            n_ends=n_ends,
        )
        for n_down in range(most, n_switch_ports // 2 - 1, -1)
        for n_up in range(ceil(n_down / ratio * (1 - 1e-9)), n_switch_ports - n_down + 1)
    )
    found = [counts for counts in tried if counts is not None]
    return min(found, key=lambda c: (c.n_switches, c.oversubscription_ratio), default=None)


def _clos(
    kind: FabricKind,
    n_nodes: int,
    n_ports: int,
    *,
    n_switch_ports: int,
    ports: tuple[int, int],
    n_ends: int,
) -> FabricCounts | None:
    n_down, n_up = ports
    n_leaf = ceil(n_nodes / n_down) * n_ports if kind != "fat tree" else ceil(n_ends / n_down)
    n_planes = n_ports if kind == "rail planes" else 1
    levels = _levels(n_leaf // n_planes, n_up, n_switch_ports=n_switch_ports)
    if levels is None:
        return None
    n_spine, n_core = (n * n_planes for n in levels)
    return FabricCounts(
        kind=kind,
        n_nodes=n_nodes,
        n_ports_per_node=n_ports,
        n_leaf=n_leaf,
        n_spine=n_spine,
        n_core=n_core,
        n_node_cables=n_ends,
        n_leaf_cables=n_leaf * n_up if n_spine else 0,
        n_spine_cables=n_leaf * n_up if n_core else 0,
        oversubscription_ratio=n_down / n_up,
    )


def _one(n_nodes: int, n_ports: int, n_ends: int) -> FabricCounts:
    return FabricCounts(
        kind="one switch",
        n_nodes=n_nodes,
        n_ports_per_node=n_ports,
        n_leaf=1,
        n_spine=0,
        n_core=0,
        n_node_cables=n_ends,
        n_leaf_cables=0,
        n_spine_cables=0,
        oversubscription_ratio=1.0,
    )


def _levels(n_leaf: int, n_up: int, *, n_switch_ports: int) -> tuple[int, int] | None:
    """Spines and cores above so many leaves; None where three levels are not enough."""
    if n_leaf == 1:
        return 0, 0
    if n_leaf <= n_switch_ports:
        return _even(ceil(n_leaf * n_up / n_switch_ports), n_up), 0
    # Pods: as many spines as half of their ports reach, the other half goes up to the core.
    half = n_switch_ports // 2
    n_spine = ceil(n_leaf * n_up / half)
    n_core = ceil(n_spine * half / n_switch_ports)
    n_pods = ceil(n_leaf / half)
    return (n_spine, n_core) if n_pods <= n_switch_ports else None


def _even(n_least: int, n_up: int) -> int:
    """Spines that share a leaf's uplinks evenly: the first divisor that is large enough."""
    return next(n for n in range(n_least, n_up + 1) if n_up % n == 0)

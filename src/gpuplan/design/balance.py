"""Balanced systems at a budget: which fleets to try, and which of them does most work."""

from collections.abc import Sequence

from gpuplan.domain.system.parts import BalancedSystem

NEAR_NODES = 16
THINNING_RATIO = 0.9


def sizes(n_nodes: int, n_per_node: int) -> tuple[tuple[int, int], ...]:
    """Fleets no larger than the described one: fewer nodes, or nodes with half as many.

    Of large fleets every count near the top, then ever fewer; their nodes stay whole.
    """
    per_node = [n_per_node]
    while per_node[-1] % 2 == 0 and n_nodes <= NEAR_NODES:
        per_node.append(per_node[-1] // 2)
    counts = list(range(n_nodes, max(0, n_nodes - NEAR_NODES), -1))
    while counts[-1] > 1:
        counts.append(min(counts[-1] - 1, int(counts[-1] * THINNING_RATIO)))
    return tuple((n, size) for n in counts if n for size in per_node)


def best_within(
    systems: Sequence[BalancedSystem], budget_usd: float, *, n_most: int = 3
) -> tuple[BalancedSystem, ...]:
    """The systems that the budget pays for, most work first, then cheapest."""
    paid = [s for s in systems if s.usd is not None and s.usd.mid <= budget_usd * (1 + 1e-9)]
    return tuple(sorted(paid, key=most_work_first)[:n_most])


def most_work_first(system: BalancedSystem) -> tuple[float, float]:
    """The sort key that puts most work first and the cheaper of equals before the other."""
    return -system.n_at_work, system.usd.mid if system.usd else float("inf")

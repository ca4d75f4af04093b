"""Balanced systems at a budget, in: machines and what feeding them costs; out: the best ones."""

from collections.abc import Sequence

from gpuplan.design.fabric_parts import total
from gpuplan.domain.ranges import Range
from gpuplan.domain.system.facility import CapChoice
from gpuplan.domain.system.parts import BalancedSystem

NEAR_NODES = 16
THINNING_RATIO = 0.9

Parts = tuple[tuple[str, Range], ...]


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
    """Those that the budget pays for, most work first, then cheapest."""
    paid = [s for s in systems if s.usd is not None and s.usd.mid <= budget_usd * (1 + 1e-9)]
    return tuple(sorted(paid, key=_order)[:n_most])


def full_size(systems: Sequence[BalancedSystem]) -> BalancedSystem | None:
    """The whole fleet, fed: what it would take to keep every accelerator."""
    return min(systems, key=_order, default=None)


def _order(system: BalancedSystem) -> tuple[float, float]:
    return -system.n_at_work, system.usd.mid if system.usd else float("inf")


def capped_system(
    accelerator: str, n_accelerators: int, choice: CapChoice, *, parts: Parts, is_priced: bool
) -> BalancedSystem:
    """The same machines, fed, under a cap that their supply carries."""
    slower = choice.slowdown_ratio
    cost = f", {slower.low - 1:.0%} to {slower.high - 1:.0%} slower" if slower else ""
    return BalancedSystem(
        what=f"{n_accelerators} {accelerator} capped at {choice.cap_w:.0f} W{cost}",
        n_accelerators=n_accelerators,
        busy_frac=1.0 / slower.mid if slower else 1.0,
        usd=total(usd for _, usd in parts) if is_priced else None,
        parts=parts,
    )

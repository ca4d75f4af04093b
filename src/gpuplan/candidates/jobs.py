"""Accelerators for a job with an end: arithmetic, useful share of the clock, whole nodes.

Failures add up over accelerators, so goodput falls as the job grows, and the job grows as goodput
falls: the smallest number that meets the deadline is found by trying.
"""

from collections.abc import Callable
from math import ceil

N_ROUNDS = 60
GoodputAt = Callable[[int], float | None]  # None: unknown, and then nothing is lost


def whole_nodes(n_accelerators: float, n_per_node: int) -> int:
    """Accelerators in whole nodes, at least one node."""
    return max(1, ceil(n_accelerators / n_per_node - 1e-9)) * n_per_node


def wall_s(accelerator_s: float, n: int, goodput_at: GoodputAt) -> float | None:
    """How long the job takes on so many; None where failures leave no progress."""
    share = goodput_at(n)
    if share is None:
        share = 1.0
    return accelerator_s / n / share if share > 0 else None


def fewest_for(
    accelerator_s: float, deadline_s: float, *, n_per_node: int, n_least: int, goodput_at: GoodputAt
) -> int | None:
    """The fewest accelerators in whole nodes that end in time; None: more only fail more."""
    n = whole_nodes(max(n_least, accelerator_s / deadline_s), n_per_node)
    for _ in range(N_ROUNDS):
        took = wall_s(accelerator_s, n, goodput_at)
        if took is None:
            return None
        if took <= deadline_s * (1.0 + 1e-9):
            return _fewer(n, accelerator_s, deadline_s, n_per_node, n_least, goodput_at)
        wanted = whole_nodes(n * took / deadline_s, n_per_node)
        n = max(wanted, n + n_per_node)
    return None


def part_of_node(
    accelerator_s: float, deadline_s: float, *, n_per_node: int, n_least: int, goodput_at: GoodputAt
) -> int | None:
    """The fewest in halves of one node that end in time: clouds rent those too; None: none do."""
    n = 1
    while n < n_per_node:
        took = wall_s(accelerator_s, n, goodput_at)
        if n >= n_least and took is not None and took <= deadline_s * (1.0 + 1e-9):
            return n
        n *= 2
    return None


def _fewer(
    n: int,
    accelerator_s: float,
    deadline_s: float,
    n_per_node: int,
    n_least: int,
    goodput_at: GoodputAt,
) -> int:
    """Steps back that the last jump made too many."""
    while n - n_per_node >= whole_nodes(n_least, n_per_node):
        took = wall_s(accelerator_s, n - n_per_node, goodput_at)
        if took is None or took > deadline_s * (1.0 + 1e-9):
            break
        n -= n_per_node
    return n

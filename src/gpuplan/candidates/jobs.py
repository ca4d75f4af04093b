"""Accelerators for a job with an end: arithmetic, useful share of the clock, whole nodes.

Failures add up over accelerators, so goodput falls as the job grows, and the job grows as goodput
falls: the smallest number that meets the deadline is found by trying.
"""

from collections.abc import Callable
from math import ceil

from gpuplan.domain.noun import dataclass

N_ROUNDS = 60
GoodputAt = Callable[[int], float | None]  # None: unknown, and then nothing is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A job that must end in time, and what accelerators come in."""

    accelerator_s: float  # of useful work, all accelerators together
    deadline_s: float
    n_per_node: int
    n_least: int  # that hold its memory
    goodput_at: GoodputAt

    def is_met(self, n: int) -> bool | None:
        """Whether so many accelerators end in time; None where failures leave no progress."""
        took_s = wall_s(self.accelerator_s, n, self.goodput_at)
        return None if took_s is None else took_s <= self.deadline_s * (1.0 + 1e-9)


def whole_nodes(n_accelerators: float, n_per_node: int) -> int:
    """Accelerators in whole nodes, at least one node."""
    return max(1, ceil(n_accelerators / n_per_node - 1e-9)) * n_per_node


def wall_s(accelerator_s: float, n: int, goodput_at: GoodputAt) -> float | None:
    """How long the job takes on so many; None where failures leave no progress."""
    share = goodput_at(n)
    if share is None:
        share = 1.0
    return accelerator_s / n / share if share > 0 else None


def fewest_for(job: Deadline) -> int | None:
    """The fewest accelerators in whole nodes that end in time; None: more only fail more."""
    n = whole_nodes(max(job.n_least, job.accelerator_s / job.deadline_s), job.n_per_node)
    for _ in range(N_ROUNDS):
        took_s = wall_s(job.accelerator_s, n, job.goodput_at)
        if took_s is None:
            return None
        if job.is_met(n):
            return _fewer(n, job)
        wanted = whole_nodes(n * took_s / job.deadline_s, job.n_per_node)
        n = max(wanted, n + job.n_per_node)
    return None


def part_of_node(job: Deadline) -> int | None:
    """The fewest in halves of one node that end in time: clouds rent those too; None: none do."""
    n = 1
    while n < job.n_per_node:
        if n >= job.n_least and job.is_met(n):
            return n
        n *= 2
    return None


def _fewer(n: int, job: Deadline) -> int:
    """Steps back that the last jump made too many."""
    least = whole_nodes(job.n_least, job.n_per_node)
    while n - job.n_per_node >= least and job.is_met(n - job.n_per_node):
        n -= job.n_per_node
    return n

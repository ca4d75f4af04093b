"""Seconds that a layout spends on links, before overlap: tensor, context, expert, pipeline, data.

In: bytes of one rank, the layout, the fabric. Out: seconds of the collectives. Ranks are placed
tensor first, then context, expert and data, pipeline last, as Megatron does.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from gpuplan.domain.hardware.links import LinkModel
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.domain.training.time import Fabric
from gpuplan.performance.collectives import (
    TimeOf,
    all_gather_time_s,
    all_reduce_time_s,
    all_to_all_time_s,
    hierarchical_time_s,
    point_to_point_time_s,
)


class Spread(NamedTuple):
    """A group of ranks over scale-up domains."""

    n_islands: int
    n_inside: int  # of the group in one scale-up domain

    @property
    def n_ranks(self) -> int:
        """Ranks of the whole group."""
        return self.n_islands * self.n_inside


def spread(n_ranks: int, stride: int, fabric: Fabric) -> Spread:
    """How many ranks of a group share a scale-up domain when neighbours stand `stride` apart."""
    n_inside = min(n_ranks, max(1, fabric.n_domain // max(1, stride)))
    while n_ranks % n_inside:
        n_inside -= 1
    return Spread(n_ranks // n_inside, n_inside)


@lru_cache(maxsize=4096)
def _nics(link: LinkModel, n_ranks: int) -> LinkModel:
    """The NICs of the ranks that one scale-up domain has in a group, together."""
    return replace(link, bytes_per_s=link.bytes_per_s * n_ranks)


def gather_s(message_bytes: float, group: Spread, fabric: Fabric) -> float:
    """All-gather or reduce-scatter of the whole message."""
    return _over_domains(all_gather_time_s, message_bytes, group, fabric)


def all_reduce_s(message_bytes: float, group: Spread, fabric: Fabric) -> float:
    """Every rank holds the sum."""
    if group.n_islands == 1:
        return all_reduce_time_s(message_bytes, group.n_inside, fabric.inside)
    return _over_domains(all_reduce_time_s, message_bytes, group, fabric)


def _over_domains(time_s: TimeOf, message_bytes: float, group: Spread, fabric: Fabric) -> float:
    inside = (group.n_inside, fabric.inside)
    outside = (group.n_islands, _nics(fabric.outside, group.n_inside))
    return hierarchical_time_s(time_s, message_bytes, inside, outside)


def all_to_all_s(message_bytes: float, far_bytes: float, group: Spread, fabric: Fabric) -> float:
    """Tokens to the ranks of their experts; over domains once each, then sent on inside."""
    inside_s = all_to_all_time_s(message_bytes, group.n_inside, fabric.inside)
    if group.n_islands == 1:
        return inside_s
    # Each rank has an adapter of its own here, so nothing is shared on the way out.
    return max(inside_s, all_to_all_time_s(far_bytes, group.n_islands, fabric.outside))


# Ranks of each process group, and how far apart neighbours stand. Ranks are placed tensor first.
GROUPS: dict[str, Callable[[ParallelLayout], tuple[int, int]]] = {
    "tp": lambda x: (x.tp, 1),
    "cp": lambda x: (x.cp, x.tp),  # ranks that share a sequence
    "ep": lambda x: (x.ep, x.tp),  # ranks that the experts are spread over
    "dp": lambda x: (x.dp * x.cp, x.tp),  # the same parameters of everything but experts
    "expert_dp": lambda x: (max(1, x.dp * x.cp // x.ep), x.tp * x.ep),  # the same experts
    "shard": lambda x: (x.n_shards, x.tp),  # one copy of fully sharded parameters
    # Copies of a shard in hybrid sharding.
    "replica": lambda x: (max(1, x.dp * x.cp // x.n_shards), x.tp * x.n_shards),
}


def process_group(name: str, layout: ParallelLayout, fabric: Fabric) -> Spread:
    """How the ranks of this process group are spread over scale-up domains."""
    return spread(*GROUPS[name](layout), fabric)


def tp_s(message_bytes: float, layout: ParallelLayout, fabric: Fabric) -> float:
    """One reduction of a layer: all-reduce, or reduce-scatter and all-gather of its halves."""
    group = process_group("tp", layout, fabric)
    if layout.has_sequence_parallel:
        return 2.0 * gather_s(message_bytes, group, fabric)
    return all_reduce_s(message_bytes, group, fabric)


def p2p_s(message_bytes: float, layout: ParallelLayout, fabric: Fabric) -> float:
    """Hand-over to the next stage, forward and backward, for every chunk of a stage."""
    if layout.pp == 1:
        return 0.0
    n_apart = layout.n_accelerators // layout.pp
    outside_frac = min(1.0, n_apart / fabric.n_domain)
    inside_s = point_to_point_time_s(message_bytes, fabric.inside)
    outside_s = point_to_point_time_s(message_bytes, fabric.outside)
    one_s = outside_frac * outside_s + (1.0 - outside_frac) * inside_s
    return 2.0 * layout.n_virtual * one_s

"""MIG: every lawful state of a GPU, and the state after one more slice of each profile."""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.cluster.cluster import NodeGroup, SlicePlaces
from gpuplan.domain.columns import Ints

N_MASKS = 256  # eight places
NOT_LAWFUL = -1


def _masks(profile: SlicePlaces) -> list[int]:
    """Occupied places, one bit each, for every way to lay the profile."""
    run = (1 << profile.n_places) - 1
    return [run << start for start in profile.starts if start + profile.n_places <= 8]


def _freedom(used: int, every: Sequence[Sequence[int]]) -> int:
    """How many further slices of any profile could still be laid, one at a time."""
    return sum(not mask & used for masks in every for mask in masks)


def next_state(used: int, profile: int, every: Sequence[Sequence[int]]) -> int:
    """The state with one more slice, laid where it leaves most other ways open."""
    free = [mask for mask in every[profile] if not mask & used]
    if not free:
        return NOT_LAWFUL
    return used | max(free, key=lambda mask: (_freedom(used | mask, every), mask))


def slice_table(groups: Sequence[NodeGroup], names: Sequence[str]) -> Ints:
    """By group, profile and state: the state with the slice added, or -1."""
    table = np.full((max(1, len(groups)), max(1, len(names)), N_MASKS), NOT_LAWFUL, np.int64)
    for g, group in enumerate(groups):
        every = [_masks(one) for one in group.slices]
        known = {one.profile: i for i, one in enumerate(group.slices)}
        for p, name in enumerate(names):
            if name in known:
                states = (next_state(used, known[name], every) for used in range(N_MASKS))
                table[g, p] = np.fromiter(states, np.int64, N_MASKS)
    return table

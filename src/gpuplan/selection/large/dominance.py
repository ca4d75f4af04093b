"""Options that can never be better than another of the same workload in the same pool."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.plan.selection import FleetOption, Refusal
from gpuplan.selection.program.tables import Tables


def undominated(tab: Tables) -> tuple[Ints, tuple[Refusal, ...]]:
    """Positions of the options worth keeping, and the others with the one that beats each.

    Only within one pool: across pools quotas, power and sharing may favour the needier.
    """
    groups = np.stack([tab.workload, tab.pool, tab.slice_kind], axis=1)
    _, group = np.unique(groups, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    edges = np.flatnonzero(np.diff(group.ravel()[order])) + 1
    kept, refused = [], []
    for members in np.split(order, edges):
        beaten = _beaten(tab, members)
        kept += [int(i) for i in members if int(i) not in beaten]
        refused += [_refusal(tab, loser, winner) for loser, winner in beaten.items()]
    return np.array(sorted(kept), dtype=np.int64), tuple(refused)


def _beaten(tab: Tables, members: Ints) -> dict[int, int]:
    """Loser → winner; of equals the first stays."""
    beaten: dict[int, int] = {}
    if len(members) < 2:
        return beaten
    profile = np.array([_profile(tab.problem.options[i], tab.need[i]) for i in members])
    for place, i in enumerate(members):
        for other, j in enumerate(members):
            is_rival = other != place and int(j) not in beaten
            if is_rival and np.all(profile[other] <= profile[place]):
                beaten[int(i)] = int(j)
                break
    return beaten


def _profile(option: FleetOption, need: Floats) -> Floats:
    """Everything that an option costs, lower is better."""
    extra = [float(option.n_reserve), option.once_usd, option.time_s]
    return np.concatenate([need.ravel(), extra])


def _refusal(tab: Tables, loser: int, winner: int) -> Refusal:
    options = tab.problem.options
    reason = f"{options[winner].name} needs no more in any hour, on the same nodes"
    return Refusal(name=options[loser].name, reason=reason)

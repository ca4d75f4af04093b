"""Options that can never be better than another of the same workload in the same pool."""

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.selection.program.tables import Tables


def undominated(tab: Tables) -> Ints:
    """Positions of the options worth keeping; of equals the first stays.

    Only within one pool: across pools quotas, power and sharing may favour the needier.
    """
    groups = np.stack([tab.workload, tab.pool, tab.slice_kind], axis=1)
    _, group = np.unique(groups, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    edges = np.flatnonzero(np.diff(group.ravel()[order])) + 1
    kept = [i for members in np.split(order, edges) for i in _best_of(tab, members)]
    return np.array(sorted(kept), dtype=np.int64)


def _best_of(tab: Tables, members: Ints) -> list[int]:
    """Those that no other beats in everything that an option costs."""
    options = [tab.problem.options[i] for i in members]
    extra = [[float(o.n_reserve), o.once_usd, o.time_s] for o in options]
    profile = np.concatenate([tab.need[members].reshape(len(members), -1), extra], axis=1)
    beaten: set[int] = set()
    for place in range(len(members)):
        is_no_more = np.all(profile <= profile[place], axis=1)
        rivals = set(np.flatnonzero(is_no_more).tolist()) - beaten - {place}
        if rivals:
            beaten.add(place)
    return [int(i) for place, i in enumerate(members) if place not in beaten]

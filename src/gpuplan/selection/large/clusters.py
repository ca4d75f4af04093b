"""Which hours are alike: the fewest groups that still tell peaks from valleys."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints


def cluster_hours(load: Floats, weight: Floats, *, n_clusters: int) -> Ints:
    """[hour] the group of each hour, by Ward's rule on rows of loads [hour, feature] [Ward1963].

    The hour of the highest total keeps a group of its own, unless there is but one.
    """
    n_hours = len(weight)
    if n_clusters == 1:
        return np.zeros(n_hours, dtype=np.int64)
    if n_clusters >= n_hours:
        return np.arange(n_hours)
    peak = int(np.argmax(load.sum(axis=1)))
    groups = [[h] for h in range(n_hours) if h != peak]
    means = [load[h[0]] for h in groups]
    sizes = [float(weight[h[0]]) for h in groups]
    while len(groups) > max(1, n_clusters - 1):
        i, j = _closest(np.array(means), np.array(sizes))
        total = sizes[i] + sizes[j]
        means[i] = (means[i] * sizes[i] + means[j] * sizes[j]) / total
        sizes[i] = total
        groups[i] = groups[i] + groups[j]
        del groups[j], means[j], sizes[j]
    cluster = np.zeros(n_hours, dtype=np.int64)
    for number, hours in enumerate(sorted(groups, key=min), start=1):
        cluster[hours] = number
    return cluster


def _closest(means: Floats, sizes: Floats) -> tuple[int, int]:
    """The pair whose union adds least to the spread within groups; the first of equals."""
    squares = (means**2).sum(axis=1)
    distance = squares[:, None] + squares[None] - 2.0 * means @ means.T
    cost = distance * (sizes[:, None] * sizes[None] / (sizes[:, None] + sizes[None]))
    cost[np.tril_indices(len(sizes))] = np.inf
    i, j = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return int(i), int(j)

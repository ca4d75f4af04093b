"""Least of many, kept up to date: a tree whose every node is the lesser of its two children.

Node 1 is the root; the leaves are the second half of the array. A change costs one walk up, and
stops where nothing changes any more.
"""

from gpuplan.simulation.serving.kernels.engine.state import Ints
from gpuplan.simulation.serving.kernels.jit.compiled import part


@part
def set_leaf(tree: Ints, leaf: int, value: int) -> None:
    """The leaf has this value from now on."""
    at = (tree.shape[0] >> 1) + leaf
    if tree[at] == value:
        return
    tree[at] = value
    while at > 1:
        value = min(value, tree[at ^ 1])
        at >>= 1
        if tree[at] == value:
            return
        tree[at] = value


@part
def first_least(tree: Ints) -> int:
    """The first leaf that has the root's value."""
    at, n_leaves, least = 1, tree.shape[0] >> 1, tree[1]
    while at < n_leaves:
        at = 2 * at + int(tree[2 * at] != least)
    return int(at - n_leaves)

"""The bound and the choice together: branches where one workload that is split moves both.

A large workload that the relaxed problem spreads over several pools uses the quotas and valleys of
all of them; in a plan it runs in one. Where the gap of the first choice is wide, the workload with
the most money in its smaller parts is given to each of its pools in turn, and to all others
together. The lowest bound of the open branches is the bound of the whole.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.large.dive import Dive
from gpuplan.selection.large.master import Relaxed, solve_relaxed
from gpuplan.selection.large.pools import Costs

N_CUT_ROUNDS = 30
# Rounding rows end when a round raises the bound by less than this share of it, or of the gap.
LEAST_RISE, RISE_OF_GAP = 1e-4, 0.03
# Branches and moves are tried where the gap of the choice is above this share of the gap asked for.
NEAR = 0.8
LEAST_GAP = 5e-3  # a narrower one is not worth a branch
N_BRANCHED = 5  # workloads that are branched on
SPLIT = 0.02  # the least part of a workload that has a branch of its own


@dataclass(frozen=True, eq=False)
class Branch:
    """What may be chosen, the relaxed optimum of that, and the prices that prove its bound."""

    is_allowed: Ints  # [late column]
    found: Relaxed
    prices: Floats


@dataclass
class Incumbent:
    """The best choice so far and its relaxed optimum."""

    fixed: dict[int, int]
    settled: Relaxed


def branched(dive: Dive, gap_frac: float, *, costs: Costs | None) -> tuple[float, Relaxed] | None:
    """A proven bound and the relaxed optimum of the best choice found, which the dive then holds.

    None where even the relaxed problem has no answer; costs: those of whole nodes, for moves.
    """
    is_allowed = np.ones(len(dive.master.group), dtype=bool)
    leaves = [_bounded(dive, is_allowed, gap_frac=gap_frac)]
    best = _chosen(dive, leaves[0], gap_frac=gap_frac, costs=costs)
    if best is None:
        return None
    for _ in range(N_BRANCHED if costs is not None else 0):
        leaf = min(leaves, key=lambda one: one.found.bound)
        w = _widest(dive, leaf) if leaf.found.bound < _enough(best, gap_frac) else None
        if w is None:
            break
        leaves.remove(leaf)
        parts, best = _explored(dive, leaf, w, best=best, gap_frac=gap_frac, costs=costs)
        leaves += parts
    return min(leaf.found.bound for leaf in leaves), _provisioned(dive, best)


def _enough(best: Incumbent, gap_frac: float) -> float:
    """The bound that needs no more branches."""
    return (1.0 - max(NEAR * gap_frac, LEAST_GAP)) * best.settled.objective


def _explored(
    dive: Dive, leaf: Branch, w: int, *, best: Incumbent, gap_frac: float, costs: Costs | None
) -> tuple[list[Branch], Incumbent]:
    """The parts of a branch by the options of a workload; a choice is made in the promising."""
    parts: list[Branch] = []
    for is_allowed in _parts(dive, leaf, w):
        enough = _enough(best, gap_frac)
        dive.master.best = _prices(dive, leaf)
        part = _bounded(dive, is_allowed, gap_frac=gap_frac, enough=enough)
        if part.found.bound < min([enough, *(one.found.bound for one in parts)]):
            other = _chosen(dive, part, gap_frac=gap_frac, costs=costs)
            if other is not None and other.settled.objective < best.settled.objective:
                best = other
        parts.append(part)
    return parts, best


def _bounded(dive: Dive, is_allowed: Ints, *, gap_frac: float, enough: float = np.inf) -> Branch:
    """A branch after rounding rows and the columns that they call for; `enough` ends it."""
    master = dive.master
    master.restrict(is_allowed)
    dive.fixed = {}
    dive.bind()
    found = solve_relaxed(master, enough)
    least = max(LEAST_RISE, RISE_OF_GAP * gap_frac)
    for _ in range(N_CUT_ROUNDS):
        before = found.bound
        if not np.isfinite(found.objective) or before >= enough or not dive.cut(found):
            break
        found = solve_relaxed(master, enough)
        if found.bound - before < least * abs(found.bound):
            break
    return Branch(is_allowed, found, master.best)


def _prices(dive: Dive, branch: Branch) -> Floats:
    """The prices of a branch; rows that came later are free."""
    prices = np.zeros(len(dive.master.row_lower))
    prices[: len(branch.prices)] = branch.prices
    return prices


def _chosen(
    dive: Dive, branch: Branch, *, gap_frac: float, costs: Costs | None
) -> Incumbent | None:
    """One option for each workload within a branch, improved by moves where the gap is wide."""
    if not np.isfinite(branch.found.objective):
        return None
    master, bound = dive.master, branch.found.bound
    master.best = _prices(dive, branch)
    master.restrict(branch.is_allowed)
    dive.fixed = {}
    settled = dive.choose(branch.found)
    if settled is None:
        return None
    is_near = settled.objective - bound <= NEAR * gap_frac * settled.objective
    if costs is not None and not is_near:
        settled = dive.improve(settled, costs, bound=bound)
    return Incumbent(dict(dive.fixed), settled)


def _widest(dive: Dive, branch: Branch) -> int | None:
    """The workload with the most money in all but the largest of its parts; None: none is split."""
    built = dive.master.built
    share = branch.found.values[built.lay.choose]
    largest = np.zeros(len(built.rows["one"]))
    np.maximum.at(largest, built.tab.workload, share)
    money = np.abs(branch.found.duals[built.rows["one"]]) * (1.0 - largest)
    w = int(money.argmax())
    return w if largest[w] < 1.0 - SPLIT else None


def _parts(dive: Dive, branch: Branch, w: int) -> list[Ints]:
    """What may be chosen in each part of a branch: one of the options in use, or another."""
    tab, lay = dive.master.built.tab, dive.master.built.lay
    share = branch.found.values[lay.choose]
    mine = np.flatnonzero(tab.workload == w)
    used = mine[share[mine] > SPLIT]
    others = branch.is_allowed.copy()
    others[used] = False
    parts = [others] if others[mine].any() else []
    for option in used[np.argsort(-share[used], kind="stable")]:
        alone = branch.is_allowed.copy()
        alone[mine] = mine == option
        parts.insert(len(parts) - bool(parts and parts[-1] is others), alone)
    return parts


def _provisioned(dive: Dive, best: Incumbent) -> Relaxed:
    """The dive at its best choice."""
    if dive.fixed != best.fixed:
        dive.master.is_allowed = np.ones(len(dive.master.group), dtype=bool)
        dive.fixed = best.fixed
        dive.bind()
        return dive.settle() or best.settled
    return best.settled

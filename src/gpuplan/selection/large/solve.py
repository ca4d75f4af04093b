"""Problems too large for one program: bound, choice, nodes and batch one after the other.

The bound comes from merged hours, generated columns and rounding rows over any of the hours; the
bill from all hours and whole nodes. Their distance is the proven gap, whatever happened in between.

Which hours are alike: the fewest groups that still tell peaks from valleys.

Options that can never be better than another of the same workload in the same pool.
"""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.plan.selection import Proof, Selection, SelectionProblem
from gpuplan.selection.exact import solve_exactly, with_proof
from gpuplan.selection.large.branch import branched
from gpuplan.selection.large.dive import Dive, Fleet, plan_fleet
from gpuplan.selection.large.fill import DeferrablePlacement, fill
from gpuplan.selection.large.master import N_KNOWN, Master, Relaxed, open_master
from gpuplan.selection.large.nodes import pool_need, provisioned_nodes
from gpuplan.selection.large.pools import Costs
from gpuplan.selection.large.prices import mean_prices, opening_prices
from gpuplan.selection.program.builder import Builder
from gpuplan.selection.program.layout import layout
from gpuplan.selection.program.measures import expected
from gpuplan.selection.program.model import Model, model
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.program.tables import Tables, compress, tables
from gpuplan.selection.result.extract import check, draft
from gpuplan.selection.result.verify import breaches

N_CLUSTERS = (4, 12)  # fewest and most, where limits count what is rented hour by hour
# Rows of pools that the relaxed problem may have, for so many options; more options, fewer rows.
N_POOL_ROWS, N_OPTIONS = 13000, 3000
METHOD = (
    "merged hours, column generation, rounding rows, branches, moves, pools in turn, "
    "all hours replayed"
)
JOINT_S = 30.0


def solve_large(problem: SelectionProblem, effort: Effort) -> Selection | None:
    """A choice with a proven gap; None where even the relaxed problem has no answer."""
    whole = tables(problem)
    smaller = replace(problem, options=tuple(problem.options[i] for i in undominated(whole)))
    full = tables(smaller)
    cluster = cluster_hours(_hour_features(full), full.hour_h, n_clusters=n_clusters(full))
    built = model(compress(full, cluster), integer=False)
    dive = Dive(_opened(built), full, cluster, {})
    costs, is_plain = unit_costs(full), _is_plain(problem)
    choice = branched(dive, effort.gap_frac, costs=costs if is_plain else None)
    if choice is None:
        return None
    bound, settled = choice
    options = tuple(smaller.options[dive.fixed[w]] for w in sorted(dive.fixed))
    chosen = replace(problem, options=options)
    plan = _by_pools(dive, chosen, settled, costs=costs) if is_plain else None
    if plan is None:
        joint = Effort(gap_frac=max(effort.gap_frac, 1e-3), max_s=JOINT_S)
        plan = solve_exactly(model(tables(chosen)), joint)
    if plan is None:
        return None
    is_proven = plan.worth_usd - bound <= effort.gap_frac * plan.worth_usd
    return with_proof(plan, bound=bound, is_proven=is_proven, method=METHOD)


def _opened(built: Model) -> Master:
    """Column generation at prices of the mean scenario, or where there is but one, lawful ones."""
    known = mean_prices(built) if built.tab.shape[0] > 1 else None
    if known is None:
        return open_master(built, opening_prices(built))
    return open_master(built, known, N_KNOWN)


def n_clusters(full: Tables) -> int:
    """One, or as many as the program can carry: limits on rented nodes then know peaks."""
    if not _has_hourly_limits(full.problem):
        return 1
    n_scenarios, n_periods, _ = full.shape
    many = min(1.0, (N_OPTIONS / max(1, len(full.pool))) ** 0.75)
    n_rows = max(1, len(full.used_pools) * n_scenarios * n_periods)
    return int(np.clip(N_POOL_ROWS * many / n_rows, *N_CLUSTERS))


def _has_hourly_limits(problem: SelectionProblem) -> bool:
    """Whether something sums or caps rented nodes of several pools, hour by hour."""
    kinds = {limit.kind for limit in problem.limits}
    is_on_site = any(t.is_on_site and not t.is_committed for t in problem.terms)
    has_most = any(pool.n_nodes_max is not None for pool in problem.pools)
    is_counted = bool(kinds & {"nodes", "accelerators", "carbon"}) or has_most
    return is_counted or (is_on_site and bool(kinds & {"power", "racks"}))


def _hour_features(full: Tables) -> Floats:
    """[hour, workload] the mean need of each workload, as a share of its own mean."""
    n_workloads = len(full.problem.workloads)
    load = np.ones((full.shape[2], max(1, n_workloads)))
    for w in range(n_workloads):
        mean = full.need[full.workload == w].mean(axis=(0, 1, 2))
        size = np.abs(full.need[full.workload == w]).mean()
        load[:, w] = mean / size * np.sqrt(size) if size else 1.0
    return load


def _is_plain(problem: SelectionProblem) -> bool:
    """Nothing but options and batch joins the pools; limits are checked afterwards."""
    has_most = any(pool.n_nodes_max is not None for pool in problem.pools)
    return not (problem.mixed or problem.geometries or has_most)


def unit_costs(full: Tables) -> Costs:
    """What a unit of each decision is worth today."""
    lay = layout(full, Builder(), integer=False)
    cost = expected(full, lay, "worth")
    existing = np.zeros((len(full.problem.pools), *full.shape[:2]))
    existing[lay.existing_pool] = cost[lay.existing]
    return Costs(cost[lay.order], existing, cost[lay.burst], cost[lay.spot])


def _by_pools(
    dive: Dive, chosen: SelectionProblem, found: Relaxed, *, costs: Costs
) -> Selection | None:
    """The plan from whole nodes pool by pool; None where that does not keep every rule."""
    full = dive.full
    fleet = plan_fleet(dive, costs, found)
    if fleet is None:
        return None
    options = np.array([dive.fixed[w] for w in sorted(dive.fixed)], dtype=np.int64)
    filled = _filled(full, costs, fleet, options)
    return None if filled is None else assemble(chosen, fleet, filled)


def _filled(full: Tables, costs: Costs, fleet: Fleet, options: Ints) -> DeferrablePlacement | None:
    need = pool_need(full, options)
    provisioned = provisioned_nodes(full, fleet.orders, fleet.existing)
    firm: Floats = np.repeat(provisioned[..., None], full.shape[2], axis=3)
    np.add.at(firm, full.burst.pool, fleet.burst)
    spare = firm * full.n_per_node[:, None, None, None] - need
    return fill(full, costs, free_h=(spare * full.hour_h).sum(axis=3), burst=fleet.burst)


def assemble(
    chosen: SelectionProblem, fleet: Fleet, filled: DeferrablePlacement
) -> Selection | None:
    """The nouns of a plan; None where a limit of the user is broken."""
    tab = tables(chosen)
    lay = layout(tab, Builder(), integer=True)
    values = np.zeros(lay.n_columns)
    values[lay.choose] = 1.0
    values[lay.order] = fleet.orders
    values[lay.existing] = fleet.existing[lay.existing_pool]
    values[lay.burst] = filled.burst
    values[lay.spot] = filled.spot
    values[lay.share] = filled.share
    proof = Proof(
        status="not proven", objective="cost", value=0.0, bound=0.0, gap_frac=0.0, method=METHOD
    )
    found = draft(tab, lay, values, proof=proof)
    if chosen.limits and breaches(chosen, found):
        return None
    check(chosen, found)
    return found


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


def undominated(tab: Tables) -> Ints:
    """Positions of the options worth keeping; of equals the first stays.

    Only within one pool: across pools quotas, power and sharing may favour the needier.
    """
    groups = np.stack([tab.workload, tab.pool, tab.slice_kind], axis=1)
    _, group = np.unique(groups, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    edges = np.flatnonzero(np.diff(group.ravel()[order])) + 1
    retained = [i for members in np.split(order, edges) for i in _best_of(tab, members)]
    return np.array(sorted(retained), dtype=np.int64)


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

"""From a relaxed optimum to one option for each workload, and to whole nodes.

Choices that are whole already are kept; of the split ones the surest is decided, both ways tried,
and the program solved again with new rounding rows, until nothing is split. Single workloads then
move where whole nodes are cheaper for it. Nodes follow pool by pool, large nodes first: what they
leave free is known before the next pool is decided.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.large.cuts import RelaxedPoint, rounding_cuts
from gpuplan.selection.large.limits import priced, room_for
from gpuplan.selection.large.master import Master, Relaxed
from gpuplan.selection.large.moves import PoolCostCache, improved
from gpuplan.selection.large.nodes import pool_need, provisioned_nodes, rent_rest, whole_nodes
from gpuplan.selection.large.pools import Batch, Costs, PoolPlan, plan_pool
from gpuplan.selection.program.solver import Effort, run
from gpuplan.selection.program.tables import Tables

SURE = 0.999
N_CUT_ROUNDS = 6
N_STRONG = 12
STRONG_EFFORT = 50_000  # rows of pools times workloads
N_TRIED = 2  # options of a split workload that are tried
N_IMPROVED = 3  # times that the choice is improved at the prices of the last one
# Plans up to so much dearer than the best one known are still looked at: batch may make up for it.
ROOM = 1.005
LEAST_LOSS = 1e-4  # of the bill, by the whole nodes of one pool: above, other counts are tried
WANTED = 4.0  # of the dearest hour of batch in a pool: what is paid for all that runs there


@dataclass(frozen=True)
class Fleet:
    """Whole nodes: orders [order], switched on [pool, s, q], rented for firm work [terms, …]."""

    orders: Floats
    existing: Floats
    burst: Floats


@dataclass
class Dive:
    """A master whose choices are being fixed; its bound stays what it was."""

    master: Master
    full: Tables
    cluster: Ints
    fixed: dict[int, int]

    @property
    def n_strong(self) -> int:
        """Split workloads that are tried both ways: fewer where each try is a long solve."""
        n_rows = self.master.built.rows["capacity"].size
        effort = n_rows * len(self.master.built.tab.problem.workloads)
        return N_STRONG if effort <= STRONG_EFFORT else 0

    def committed(self, values: Floats) -> Floats:
        """[pool, scenario, period] nodes ordered or there already in a relaxed solution."""
        tab, lay = self.master.built.tab, self.master.built.lay
        existing = np.zeros((len(tab.problem.pools), *tab.shape[:2]))
        existing[lay.existing_pool] = values[lay.existing]
        return provisioned_nodes(tab, values[lay.order], existing)

    def rented(self, values: Floats) -> Floats:
        """[pool, scenario, period, cluster] nodes rented in a relaxed solution."""
        tab, lay = self.master.built.tab, self.master.built.lay
        nodes = np.zeros((len(tab.problem.pools), *tab.shape))
        np.add.at(nodes, tab.burst.pool, values[lay.burst])
        return nodes

    def cut(self, found: Relaxed) -> int:
        """Add the rounding rows that the solution breaks; how many."""
        lay = self.master.built.lay
        point = RelaxedPoint(
            choose=found.values[lay.choose],
            burst=self.rented(found.values),
            committed=self.committed(found.values),
        )
        cuts = rounding_cuts(self.full, self.cluster, point)
        for cut in cuts:
            self.master.add_cut(cut)
        return sum(len(cut.right) for cut in cuts)

    def solve(self) -> Relaxed | None:
        """The relaxed optimum with what is fixed, without new columns."""
        self.master.highs.setOptionValue("simplex_strategy", 1)
        answer = run(self.master.highs, is_mip=False, effort=Effort())
        return None if answer is None else self.master.finished(answer)

    def settle(self, n_rounds: int = N_CUT_ROUNDS) -> Relaxed | None:
        """Solve, cut and solve again until few rows are broken."""
        found = self.solve()
        for _ in range(n_rounds):
            if found is None or self.cut(found) < 3:
                break
            found = self.solve()
        return found

    def bind(self) -> None:
        """Pass what is fixed on to the program."""
        workload = self.master.built.tab.workload
        inside = np.array(self.master.inside)
        places = np.flatnonzero(inside < len(workload))
        options = inside[places]
        wanted = np.array([self.fixed.get(int(workload[o]), -1) for o in options])
        lower = (wanted == options).astype(float)
        free = np.where(self.master.is_allowed[options], np.inf, 0.0)
        upper = np.where(wanted < 0, free, lower)
        first = len(self.master.early.number) + self.master.n_artificial
        columns = (first + places).astype(np.int32)
        self.master.highs.changeColsBounds(len(columns), columns, lower, upper)

    def choose(self, found: Relaxed) -> Relaxed | None:
        """Fix every workload to one option; the relaxed optimum of that choice."""
        tab, lay = self.master.built.tab, self.master.built.lay
        n_workloads = len(tab.problem.workloads)
        now: Relaxed | None = found
        while now is not None and len(self.fixed) < n_workloads:
            share = now.values[lay.choose]
            split = []
            for w in range(n_workloads):
                mine = np.flatnonzero(tab.workload == w)
                order = mine[np.argsort(-share[mine], kind="stable")]
                if w not in self.fixed and share[order[0]] > SURE:
                    self.fixed[w] = int(order[0])
                elif w not in self.fixed:
                    split.append((float(share[order[0]]), w, order[:N_TRIED]))
            split.sort(key=lambda row: (-row[0], row[1]))
            # With many split, all but the last few are decided without trying both ways.
            n_sure = max(0, (len(split) - self.n_strong) // 3 + (self.n_strong < N_STRONG))
            for _, w, order in split[:n_sure]:
                self.fixed[w] = int(order[0])
            now = self._decide(split, share)
        return now

    def _decide(self, split: list[tuple[float, int, Ints]], share: Floats) -> Relaxed | None:
        """Try the surest split workload both ways and keep the cheaper."""
        todo = [(w, order) for _, w, order in split if w not in self.fixed]
        if not todo:
            self.bind()
            return self.settle()
        w, order = todo[0]
        tried: list[tuple[float, int, Relaxed]] = []
        for option in order[share[order] > 0.02][: N_TRIED if self.n_strong else 1]:
            self.fixed[w] = int(option)
            self.bind()
            found = self.settle(2)
            if found is not None:
                tried.append((found.objective, int(option), found))
        if not tried:
            return None
        _, self.fixed[w], best = min(tried, key=lambda row: (row[0], row[1]))
        self.bind()
        return best

    def improve(self, found: Relaxed, costs: Costs, *, bound: float) -> Relaxed:
        """The choice after moves of single workloads that pay, and its relaxed optimum."""
        for _ in range(N_IMPROVED):
            before = dict(self.fixed)
            batch = [_batch(self, found, a) for a in range(len(self.full.problem.pools))]
            book = PoolCostCache(self.full, priced(self.master, costs, found), batch)
            most = ROOM * found.objective - bound
            self.fixed = improved(book, before, above=self.above_best(), most=most)
            if self.fixed == before:
                break
            options = np.array(sorted(self.fixed.values()), dtype=np.int64)
            self.master.add(options[~self.master.is_inside[options]])
            self.bind()
            now = self.settle()
            if now is None or now.objective >= found.objective:
                self.fixed = before
                self.bind()
                self.solve()
                break
            found = now
        return found

    def above_best(self) -> Floats:
        """[option] how much dearer it is than the best of its workload, at the proven prices."""
        workload = self.full.workload
        unit = self.master.unit_costs(self.master.best)[: len(workload)]
        cheapest = np.full(len(self.full.problem.workloads), np.inf)
        np.minimum.at(cheapest, workload, unit)
        above: Floats = unit - cheapest[workload]
        return above


def plan_fleet(dive: Dive, costs: Costs, found: Relaxed) -> Fleet | None:
    """Whole nodes pool by pool; the rest is solved again after each."""
    full = dive.full
    options = np.array([dive.fixed[w] for w in sorted(dive.fixed)], dtype=np.int64)
    need = pool_need(full, options)
    nodes = whole_nodes(full, need)
    orders = np.zeros(len(full.orders.pool))
    existing = np.zeros((len(full.problem.pools), *full.shape[:2]))
    now = found
    for pool in _large_first(full):
        best: tuple[Relaxed, PoolPlan] | None = None
        for plan in _pool_plans(dive, costs, now, pool, need=need[pool]):
            after = _with_pool(dive, pool, plan, nodes=nodes[pool], now=now)
            if after is not None and (best is None or after.objective < best[0].objective):
                best = (after, plan)
            # What whole nodes of one pool may cost; above it other counts are tried.
            if best is not None and best[0].objective <= now.objective * (1.0 + LEAST_LOSS):
                break
        if best is None:
            return None
        if best[1] is not plan:
            _with_pool(dive, pool, best[1], nodes=nodes[pool], now=now)
        now = best[0]
        orders[full.orders.pool == pool], existing[pool] = best[1].orders, best[1].existing
    provisioned = provisioned_nodes(full, orders, existing)
    burst = rent_rest(full, np.maximum(0.0, nodes - provisioned[..., None]))
    return None if burst is None else Fleet(orders, existing, burst)


def _pool_plans(
    dive: Dive, costs: Costs, now: Relaxed, pool: int, *, need: Floats
) -> Iterator[PoolPlan]:
    """Whole nodes for a pool: at what batch pays there, at what it would pay, and as relaxed.

    Where many pools have room for batch, the last hour of it is worth little in each: by that
    price alone none of them would order nodes for it.
    """
    full, values, lay = dive.full, now.values, dive.master.built.lay
    batch, room = _batch(dive, now, pool), room_for(dive.master, now, pool)
    at_costs = priced(dive.master, costs, now)
    wanted = Batch(np.full_like(batch.usd_per_h, WANTED * batch.usd_per_h.max()), batch.most_h)
    for paid in (batch, wanted):
        plan = plan_pool(full, at_costs, pool, need=need, batch=paid, room=room)
        if plan is not None:
            yield plan
    relaxed = values[lay.order[full.orders.pool == pool]]
    on = np.zeros(full.shape[:2])
    for place in np.flatnonzero(lay.existing_pool == pool):
        on = np.ceil(values[lay.existing[place]] - 1e-6)
    for counts in (np.rint(relaxed), np.ceil(relaxed - 1e-6)):
        yield PoolPlan(counts, on, 0.0)


def _with_pool(
    dive: Dive, pool: int, plan: PoolPlan, *, nodes: Floats, now: Relaxed
) -> Relaxed | None:
    """The relaxed optimum with the pool's whole nodes held; None: they are not to be had."""
    full = dive.full
    orders, existing = (
        np.zeros(len(full.orders.pool)),
        np.zeros((len(full.problem.pools), *full.shape[:2])),
    )
    orders[full.orders.pool == pool], existing[pool] = plan.orders, plan.existing
    rest = np.zeros((len(full.problem.pools), *full.shape))
    provisioned = provisioned_nodes(full, orders, existing)[pool]
    rest[pool] = np.maximum(0.0, nodes - provisioned[..., None])
    burst = rent_rest(full, rest)
    if burst is None:
        return None
    _fix_pool(dive, pool, plan.orders, existing=plan.existing, burst=burst)
    is_idle = not nodes.any() and not plan.orders.any() and not _batch(dive, now, pool).most_h.any()
    return now if is_idle else dive.solve()


def _large_first(full: Tables) -> list[int]:
    """Pools by the price of a node, dearest first: small nodes adapt best, so they come last."""
    price = np.zeros(len(full.problem.pools))
    for terms in full.problem.terms:
        a = full.place(terms.pool)
        hourly = terms.usd_per_node_h + terms.upfront_usd / full.problem.horizon.period_s
        price[a] = max(price[a], hourly)
    return sorted((int(a) for a in full.used_pools), key=lambda a: (-price[a], a))


def _batch(dive: Dive, found: Relaxed, pool: int) -> Batch:
    """What batch pays in a pool, for as much as it does there now and one node more."""
    built = dive.master.built
    tab, lay = built.tab, built.lay
    at = np.flatnonzero(lay.batch_pool == pool)
    if not len(at):
        nothing = np.zeros(tab.shape[:2])
        return Batch(nothing, nothing)
    done_h = (found.values[lay.batch[at[0]]] * tab.hour_h).sum(axis=2)
    duals = found.duals
    price = duals[built.rows["any"][at[0]]] + duals[built.rows["firm"][at[0]]]
    more_h = tab.n_per_node[pool] * tab.hour_h.sum() * (done_h > 1e-6)
    return Batch(np.maximum(0.0, price), done_h + more_h)


def _fix_pool(dive: Dive, pool: int, orders: Floats, *, existing: Floats, burst: Floats) -> None:
    """Hold the pool's orders where they are, and at least the nodes rented for firm work."""
    built, full = dive.master.built, dive.full
    lay = built.lay
    mine = np.flatnonzero(full.orders.pool == pool)
    _set(dive, lay.order[mine], orders, orders)
    at = np.flatnonzero(lay.existing_pool == pool)
    _set(dive, lay.existing[at].ravel(), existing.ravel()[: len(at) * existing.size], None)
    share = full.hour_h / np.bincount(dive.cluster, full.hour_h)[dive.cluster]
    mean = np.zeros((full.shape[2], built.tab.shape[2]))
    mean[np.arange(len(share)), dive.cluster] = share
    for m in np.flatnonzero(full.burst.pool == pool):
        low = (burst[m] @ mean).ravel()
        _set(dive, lay.burst[m].ravel(), low, np.full(len(low), full.burst.n_max[m]))


def _set(dive: Dive, columns: Ints, lower: Floats, upper: Floats | None) -> None:
    if len(columns):
        places = np.searchsorted(dive.master.early.number, columns).astype(np.int32)
        most = lower if upper is None else np.maximum(lower, upper)
        dive.master.highs.changeColsBounds(len(places), places, lower, most)

"""The relaxed problem by column generation: a live program that choices join as they pay.

Every row is there from the start; choices and batch shares enter when their reduced cost is
negative. Prices of the rows prove a lower bound on every plan, whatever is still outside
[Vanderbeck2005]; they are smoothed towards the best ones so far [Wentges1997].
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, vstack

from gpuplan.domain.columns import Floats, Ints
from gpuplan.errors import SolverError, one
from gpuplan.selection.large.cuts import Cut
from gpuplan.selection.program.builder import Program
from gpuplan.selection.program.model import Model
from gpuplan.selection.program.solver import Answer, Effort, load, run

if TYPE_CHECKING:
    from highspy import Highs

N_ROUNDS = 80
N_ENTRANTS = 3  # options of a workload that join in one round
N_FIRST = 20  # at the opening prices
N_KNOWN = 8  # at opening prices that come from a solved problem
SMOOTH = 0.8
DEARER = 1e3
CLOSED = 1e-4  # relative distance of bound and relaxed optimum that ends the search


@dataclass(frozen=True)
class Columns:
    """Some columns of a program."""

    number: Ints  # in the whole program
    cost: Floats
    upper: Floats
    matrix: csc_array  # [row of the program, column]

    def reduced_cost(self, prices: Floats) -> Floats:
        """What each adds to the objective at these prices of the rows."""
        found: Floats = self.cost - self.matrix.T @ prices
        return found

    def with_rows(self, rows: csc_array) -> "Columns":
        """The columns with more rows below."""
        return replace(self, matrix=vstack([self.matrix, rows], format="csc"))


@dataclass(frozen=True)
class Relaxed:
    """The optimum of the relaxed problem and what it proves."""

    values: Floats  # of the whole program's columns
    objective: float
    bound: float
    duals: Floats  # of the rows


def solve_relaxed(master: "Master", enough: float = np.inf) -> Relaxed:
    """The relaxed optimum of what the master holds; an infinite one where there is none.

    The search ends where the bound passes `enough`.
    """
    effort = Effort()
    for n_round in range(N_ROUNDS):
        # Rows broke the last basis, columns did not: each has the method that keeps its work.
        master.highs.setOptionValue("simplex_strategy", 4 if n_round else 1)
        answer = run(master.highs, is_mip=False, effort=effort)
        if answer is None or answer.row_duals is None:
            return Relaxed(np.zeros(0), np.inf, np.inf, master.best)
        entrants = master.price(answer.row_duals)
        is_closed = answer.objective - master.bound <= CLOSED * abs(answer.objective)
        if is_closed or not len(entrants) or master.bound >= enough:
            found = master.finished(answer)
            if np.isfinite(found.objective) or not master.make_dearer():
                return found
        master.add(entrants)
    what = f"no end after {N_ROUNDS} rounds"
    raise one(SolverError, "selection", "column generation", what, "use fewer options")


@dataclass
class Master:
    """The live program and what is in it."""

    built: Model
    highs: "Highs"
    early: Columns
    late: Columns
    group: Ints  # of each late column: workloads, then work by scenario and period
    group_work: Floats  # [group] how much of it must be chosen: 1, or the work
    group_rate: Floats  # [late] how much one unit of the column does
    best: Floats  # prices of the best bound so far
    row_lower: Floats
    row_upper: Floats
    is_allowed: Ints  # [late] whether the branch in hand may choose it
    bound: float = -np.inf
    n_artificial: int = 0
    artificial_cost: Floats = field(default_factory=lambda: np.zeros(0))
    is_dear: bool = False  # artificial columns cost more than anything real could
    cuts: list[tuple[Cut, Ints]] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)
    is_inside: Ints = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def add(self, positions: Ints) -> None:
        """Let these late columns in."""
        late = self.late
        entering = late.matrix[:, positions]
        self.highs.addCols(
            len(positions),
            late.cost[positions],
            np.zeros(len(positions)),
            late.upper[positions],
            entering.nnz,
            entering.indptr[:-1].astype(np.int32),
            entering.indices.astype(np.int32),
            entering.data,
        )
        self.inside += [int(i) for i in positions]
        self.is_inside[positions] = True

    def make_dearer(self) -> bool:
        """Raise what artificial columns cost, once; False where that was done before.

        At opening prices nodes that are there are nearly free: what fills in may cost less.
        """
        if self.is_dear:
            return False
        self.is_dear = True
        dear = np.full(self.n_artificial, DEARER * max(1.0, float(self.artificial_cost.max())))
        places = len(self.early.number) + np.arange(self.n_artificial, dtype=np.int32)
        self.highs.changeColsCost(self.n_artificial, places.astype(np.int32), dear)
        return True

    def price(self, duals: Floats) -> Ints:
        """Late columns to let in; the bound is raised where these prices prove more."""
        own = self._fill(duals)
        for share in (SMOOTH, SMOOTH / 2, 0.0):
            prices = share * self.best + (1.0 - share) * own
            unit = self.unit_costs(prices)
            self.raise_bound(prices, unit)
            found = self.entrants(unit, duals)
            if len(found):
                break
        return found

    def _fill(self, duals: Floats) -> Floats:
        """Prices for pools in which nothing runs yet: free nodes would draw everything in."""
        filled = duals.copy()
        empty = self.built.tab.used_pools[~np.isin(self.built.tab.used_pools, self._pools_inside())]
        for rows, pools in pool_rows(self.built):
            at = rows[np.isin(pools, empty)].ravel()
            filled[at] = self.best[at]
        return filled

    def _pools_inside(self) -> Ints:
        return np.unique(late_pools(self.built)[self.inside])

    def unit_costs(self, prices: Floats) -> Floats:
        """[late] cost of one unit of what a group needs, at these prices of the pools."""
        bare = prices.copy()
        bare[group_rows(self.built)] = 0.0
        unit: Floats = self.late.reduced_cost(bare) / self.group_rate
        return np.where(self.is_allowed, unit, np.inf)

    def restrict(self, is_allowed: Ints) -> None:
        """Search a branch: these late columns alone; the best prices so far prove a first bound."""
        self.is_allowed, self.bound = is_allowed, -np.inf
        self.raise_bound(self.best, self.unit_costs(self.best))

    def raise_bound(self, prices: Floats, unit: Floats) -> None:
        """Keep these prices where they prove more than the best so far."""
        found = self.proven(prices, unit)
        if found > self.bound:
            self.bound, self.best = found, prices

    def proven(self, prices: Floats, unit: Floats) -> float:
        """The bound that these prices prove; -inf where they are not lawful."""
        cheapest = np.full(len(self.group_work), np.inf)
        np.minimum.at(cheapest, self.group, unit)
        bare = prices.copy()
        bare[group_rows(self.built)] = 0.0
        side = np.where(bare > 0, self.row_lower, self.row_upper)
        is_priced = np.abs(bare) > 1e-12
        rows = float((bare[is_priced] * side[is_priced]).sum())
        reduced = self.early.reduced_cost(bare)
        # A price above what a node costs, where there is no end of nodes, proves nothing; one that
        # is above by rounding alone is charged for as many nodes as any plan could hold.
        upper = np.minimum(self.early.upper, self._most_nodes())
        tolerance = 1e-7 * (1.0 + np.abs(self.early.cost))
        if np.any((reduced < -tolerance) & np.isinf(self.early.upper)):
            return -np.inf
        below = float((np.minimum(0.0, reduced) * upper).sum())
        return rows + below + float((cheapest * self.group_work).sum())

    def _most_nodes(self) -> float:
        tab = self.built.tab
        return float(tab.need.max(initial=1.0) * len(tab.problem.workloads) + 1.0)

    def entrants(self, unit: Floats, duals: Floats, n_each: int = N_ENTRANTS) -> Ints:
        """The cheapest outside each group that beat what the group pays now."""
        paid = duals[group_rows(self.built)]
        gain = unit - paid[self.group]
        outside = np.flatnonzero(~self.is_inside & (gain < -1e-9 * (1.0 + np.abs(unit))))
        order = outside[np.lexsort((unit[outside], self.group[outside]))]
        first = np.searchsorted(self.group[order], self.group[order])
        return order[np.arange(len(order)) - first < n_each]

    def finished(self, answer: Answer) -> Relaxed:
        """The optimum in the columns of the whole program."""
        values = answer.values
        whole = np.zeros(self.built.program.n_columns)
        n_early = len(self.early.number)
        whole[self.early.number] = values[:n_early]
        whole[self.late.number[self.inside]] = values[n_early + self.n_artificial :]
        if np.any(values[n_early : n_early + self.n_artificial] > 1e-6):
            return Relaxed(whole, np.inf, np.inf, self.best)
        duals = np.zeros(0) if answer.row_duals is None else answer.row_duals
        return Relaxed(whole, answer.objective, self.bound, duals)

    def add_cut(self, cut: Cut) -> None:
        """Let the rows of a cut in; every column, inside or not, takes its part in them."""
        n_rows, first = len(cut.right), len(self.row_lower)
        nodes = _node_rows(self.built, cut)[:, self.early.number]
        options = _placed(-cut.coefficient, cut.options, (n_rows, len(self.late.number)))
        self.early, self.late = self.early.with_rows(nodes), self.late.with_rows(options)
        artificial = csr_array((n_rows, self.n_artificial))
        whole = hstack([nodes, artificial, options[:, self.inside]], format="csr")
        whole.eliminate_zeros()
        self.highs.addRows(
            n_rows,
            cut.right,
            np.full(n_rows, np.inf),
            whole.nnz,
            whole.indptr[:-1].astype(np.int32),
            whole.indices.astype(np.int32),
            whole.data,
        )
        self.row_lower = np.append(self.row_lower, cut.right)
        self.row_upper = np.append(self.row_upper, np.full(n_rows, np.inf))
        self.best = np.append(self.best, np.zeros(n_rows))
        self.cuts.append((cut, np.arange(first, first + n_rows)))


def _placed(values: Floats, columns: Ints, shape: tuple[int, int]) -> csc_array:
    """Values [row, column] as a sparse matrix in which the columns lie at these numbers."""
    row = np.repeat(np.arange(shape[0]), len(columns))
    column = np.tile(columns, shape[0])
    return csc_array((values.ravel(), (row, column)), shape=shape)


def _node_rows(built: Model, cut: Cut) -> csc_array:
    """Coefficients of every column that holds nodes of the pool, in the periods it serves."""
    tab, lay, n_rows = built.tab, built.lay, len(cut.right)
    every = np.arange(n_rows)
    rows, columns, values = [], [], []
    for i in np.flatnonzero(tab.orders.pool == cut.pool):
        served = (cut.period >= tab.orders.first[i]) & (cut.period < tab.orders.last[i])
        served &= (tab.orders.scenario[i] < 0) | (cut.scenario == tab.orders.scenario[i])
        at = np.flatnonzero(served)
        rows.append(at)
        columns.append(np.full(len(at), lay.order[i]))
        values.append(cut.weight[at])
    for place in np.flatnonzero(lay.existing_pool == cut.pool):
        rows.append(every)
        columns.append(lay.existing[place, cut.scenario, cut.period])
        values.append(cut.weight)
    for place in np.flatnonzero((tab.burst.pool == cut.pool) & cut.has_burst):
        rows.append(every)
        columns.append(lay.burst[place, cut.scenario, cut.period, cut.cluster])
        values.append(np.ones(n_rows))
    shape = (n_rows, built.program.n_columns)
    if not rows:
        return csc_array(shape)
    entries = (np.concatenate(rows), np.concatenate(columns))
    return csc_array((np.concatenate(values), entries), shape=shape)


def group_rows(built: Model) -> Ints:
    """Rows that ask for something to be chosen: one option each, all work done."""
    work = built.rows.get("work", np.zeros(0, dtype=np.int64))
    return np.concatenate([built.rows["one"], work.ravel()])


def pool_rows(built: Model) -> list[tuple[Ints, Ints]]:
    """Blocks of rows whose first index is a pool, and those pools."""
    blocks = [(built.rows["capacity"], built.tab.used_pools)]
    if "any" in built.rows:
        blocks += [(built.rows[key], built.lay.batch_pool) for key in ("any", "firm")]
    return blocks


def late_pools(built: Model) -> Ints:
    """[late] the pool of each option and share."""
    n_each = built.tab.shape[0] * built.tab.shape[1]
    return np.concatenate([built.tab.pool, np.repeat(built.tab.shares.pool, n_each)])


def open_master(built: Model, prices: Floats, n_first: int = N_FIRST) -> Master:
    """A live program with the best few columns of each group at the opening prices given."""
    tab, lay, program = built.tab, built.lay, built.program
    late_numbers = np.concatenate([lay.choose, lay.share.ravel()])
    early_numbers = np.setdiff1d(np.arange(program.n_columns), late_numbers)
    early, late = (_columns(program, numbers) for numbers in (early_numbers, late_numbers))
    n_each = tab.shape[0] * tab.shape[1]
    n_workloads = len(tab.problem.workloads)
    work = n_workloads + tab.shares.work[:, None] * n_each + np.arange(n_each)
    master = Master(
        built=built,
        highs=load(_program_of(program, early)),
        early=early,
        late=late,
        group=np.concatenate([tab.workload, work.ravel()]),
        group_work=np.concatenate([np.ones(n_workloads), tab.work.ravel()]),
        group_rate=np.concatenate([np.ones(len(tab.pool)), np.repeat(tab.shares.rate, n_each)]),
        best=prices,
        row_lower=program.row_lower,
        row_upper=program.row_upper,
        is_allowed=np.ones(len(late.number), dtype=bool),
        is_inside=np.zeros(len(late.number), dtype=bool),
    )
    unit = master.unit_costs(prices)
    master.raise_bound(prices, unit)
    _add_artificial(master, unit)
    master.add(master.entrants(unit, np.full(program.n_rows, np.inf), n_first))
    return master


def _add_artificial(master: Master, unit: Floats) -> None:
    """Very dear columns that fill what no other can: the first program always has an answer."""
    rows = group_rows(master.built)
    dearest = np.zeros(len(rows))
    np.maximum.at(dearest, master.group, unit)
    n = len(rows)
    master.artificial_cost = 10.0 * dearest + 1.0
    master.highs.addCols(
        n,
        master.artificial_cost,
        np.zeros(n),
        np.full(n, np.inf),
        n,
        np.arange(n, dtype=np.int32),
        rows.astype(np.int32),
        np.ones(n),
    )
    master.n_artificial = n


def _columns(program: Program, numbers: Ints) -> Columns:
    """These columns of a program, in this order."""
    starts = np.append(program.starts, len(program.index))
    whole = csr_array(
        (program.value, program.index, starts), shape=(program.n_rows, program.n_columns)
    )
    return Columns(
        numbers, program.cost[numbers], program.upper[numbers], whole.tocsc()[:, numbers]
    )


def _program_of(program: Program, columns: Columns) -> Program:
    """The program with these columns alone, renumbered in order."""
    rows = columns.matrix.tocsr()
    return replace(
        program,
        cost=columns.cost,
        lower=program.lower[columns.number],
        upper=columns.upper,
        is_integer=np.zeros(len(columns.number)),
        starts=rows.indptr[:-1].astype(np.int32),
        index=rows.indices.astype(np.int32),
        value=rows.data,
    )

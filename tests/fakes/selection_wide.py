"""Small problems with everything in them that a choice can have, and their answer by trying all.

Scenarios are independent once the shared orders are placed, and every limit holds in each scenario
by itself: for each pick and each set of shared orders, the best of what is left is added up.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from fakes.selection import HOUR, horizon
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    BatchOption,
    DeferrableWork,
    FleetOption,
    NamedLimit,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.selection.training import training_options

SUMMED = ("upfront", "spend", "energy", "carbon", "time")
KINDS = ("power", "racks", "nodes", "accelerators", *SUMMED)


# ── drawn problems ───────────────────────────────────────────────────────────────────────────────


def draw_wide(seed):
    """One to three scenarios, staged orders, spot, batch, training, every kind of limit."""
    rng = np.random.default_rng([seed, 5])
    n_s, n_q, n_h = (int(rng.integers(1, most + 1)) for most in (3, 2, 2))
    time = replace(
        horizon(n_scenarios=n_s, n_periods=n_q, hours=rng.integers(1, 5, n_h), discount=0.9),
        n_shared_periods=[None, 0, 1][int(rng.integers(0, 3))],
    )
    pools = tuple(_pool(rng, a, n_h=n_h) for a in range(int(rng.integers(1, 3))))
    has_batch = bool(rng.random() < 0.5)
    terms = [t for pool in pools for t in _terms(rng, pool, shape=(n_s, n_q), spot=has_batch)]
    options = [o for w in range(int(rng.integers(1, 3))) for o in _options(rng, w, pools, time)]
    work = [_work(rng, pools, shape=(n_s, n_q))] if has_batch else []
    return SelectionProblem(
        horizon=time,
        pools=pools,
        terms=tuple(terms),
        options=tuple(options),
        deferrable=tuple(work),
        limits=tuple(_limits(rng, pools, n_q=n_q)),
    )


def _pool(rng, a, *, n_h):
    return NodePool(
        name=f"pool{a}",
        accelerator=f"type{a}",
        n_accelerators_per_node=int(rng.integers(1, 3)),
        max_w=float(rng.integers(5, 20) * 100),
        mean_w=float(rng.integers(3, 9) * 100),
        n_racks_per_node=float(rng.choice([0.25, 0.5])),
        carbon_kg_per_j=floats(rng.uniform(1e-8, 2e-7, n_h)),
        n_nodes_existing=int(rng.choice([0, 0, 1])),
        existing_usd_per_node_h=0.4,
        n_nodes_max=int(rng.integers(2, 5)) if rng.random() < 0.2 else None,
    )


def _terms(rng, pool, *, shape, spot):
    def price(low, high):
        return float(np.round(rng.uniform(low, high), 2))

    def ratio():
        return floats(np.round(rng.uniform(0.7, 1.3, shape), 2)) if rng.random() < 0.3 else None

    name, found = pool.name, []
    if rng.random() < 0.97:
        found.append(
            NodeTerms(
                name=f"{name}-demand", pool=name, purchase="on_demand",
                usd_per_node_h=price(2.0, 4.0), n_nodes_max=int(rng.integers(2, 4)) - spot,
                is_on_site=bool(rng.random() < 0.1), price_ratio=ratio(),
            )
        )  # fmt: skip
    if rng.random() < 0.6:
        found.append(
            NodeTerms(
                name=f"{name}-own", pool=name, purchase="owned", usd_per_node_h=price(0.1, 0.5),
                upfront_usd=price(2.0, 12.0), n_lead_periods=int(rng.integers(0, 2)),
                residual_usd=floats(1.0 / (1 + np.arange(shape[1] + 1))), is_on_site=True,
                n_nodes_max=int(rng.integers(1, 3)), price_ratio=ratio(),
            )
        )  # fmt: skip
    if rng.random() < 0.4:
        found.append(
            NodeTerms(
                name=f"{name}-block", pool=name,
                purchase=str(rng.choice(["reserved", "capacity_block"])),
                usd_per_node_h=price(1.0, 2.5), n_term_periods=1, n_nodes_max=1,
            )
        )  # fmt: skip
    if spot and rng.random() < 0.7:
        found.append(
            NodeTerms(
                name=f"{name}-spot", pool=name, purchase="spot", usd_per_node_h=price(0.5, 1.5),
                n_nodes_max=int(rng.integers(1, 3)), useful_frac=price(0.5, 1.0),
                price_ratio=ratio(),
            )
        )  # fmt: skip
    return found


def _options(rng, w, pools, time):
    """Ways to serve, or one training run by its starts."""
    pool = pools[int(rng.integers(0, len(pools)))].name
    if rng.random() < 0.3:
        run = FleetOption(
            workload=f"train{w}", name="run", pool=pool, need=ints(np.zeros(time.shape, int)),
            once_usd=float(rng.choice([0.0, 1.25])),
        )  # fmt: skip
        run_s = float(time.period_s * rng.uniform(0.3, 1.0))
        return list(
            training_options(
                time,
                run,
                n_accelerators=int(rng.integers(1, 4)),
                run_s=run_s,
                deadline_s=time.period_s * time.shape[1],
            )
        )
    return [
        FleetOption(
            workload=f"work{w}",
            name=f"option{o}",
            pool=pools[int(rng.integers(0, len(pools)))].name,
            need=ints(rng.integers(0, 4, time.shape)),
            n_reserve=int(rng.choice([0, 0, 1])),
            once_usd=float(rng.choice([0.0, 1.25])),
            time_s=float(rng.integers(1, 9)),
        )
        for o in range(int(rng.integers(1, 4)))
    ]


def _work(rng, pools, *, shape):
    options = tuple(
        BatchOption(
            name=pool.name, pool=pool.name,
            n_work_per_accelerator_h=float(np.round(rng.uniform(0.5, 2.0), 1)),
        )
        for pool in pools
    )  # fmt: skip
    return DeferrableWork(
        workload="batch", n_work=floats(rng.integers(0, 8, shape)), options=options,
        may_use_spot=bool(rng.random() < 0.7),
    )  # fmt: skip


def _limits(rng, pools, *, n_q):
    most = {
        "power": (1500, 6000), "racks": (0.5, 3.0), "nodes": (2, 8), "accelerators": (3, 12),
        "upfront": (4, 40), "spend": (15, 90), "energy": (1e7, 8e7), "carbon": (1.0, 8.0),
        "time": (6, 40),
    }  # fmt: skip
    kinds = rng.choice(len(KINDS), int(rng.choice([0, 1, 1, 2])), replace=False)
    for kind in (KINDS[i] for i in kinds):
        is_time = kind == "time"
        yield NamedLimit(
            name=kind, kind=kind, most=float(rng.uniform(*most[kind])),
            pools=(pools[0].name,) if rng.random() < 0.25 else (),
            purchases=("owned",) if rng.random() < 0.15 and not is_time else (),
            periods=(n_q - 1,) if rng.random() < 0.2 and not is_time else (),
        )  # fmt: skip


# ── everything tried ─────────────────────────────────────────────────────────────────────────────


def everything_tried_usd(problem):
    """The lowest expected cost; None where nothing is lawful."""
    groups = [[o for o in problem.options if o.workload == w] for w in problem.workloads]
    slots = [
        (t, q)
        for t in problem.terms
        if t.is_committed
        for q in range(problem.horizon.shape[1] - t.n_lead_periods)
    ]
    n_shared = problem.horizon.n_shared_periods
    n_s, n_q, _ = problem.horizon.shape
    n_shared = n_q if n_shared is None or n_s == 1 else n_shared
    shared = [(t, q) for t, q in slots if q < n_shared]
    later = [(t, q) for t, q in slots if q >= n_shared]
    best = np.inf
    for picks in product(*groups):
        tried = Tried(problem, picks)
        for plan in _plans(shared):
            usd = sum(
                problem.horizon.probability_frac[s]
                * min(tried.scenario_usd(s, (*plan, *more)) for more in _plans(later))
                for s in range(n_s)
            )
            best = min(best, usd)
    return None if np.isinf(best) else float(best)


def _plans(slots):
    counts = product(*[range(t.n_nodes_max + 1) for t, _ in slots])
    return [tuple(zip(slots, n, strict=True)) for n in counts]


class Tried:
    """One pick of options, with everything that can be ordered and rented for it."""

    def __init__(self, problem, picks):
        self.problem, self.time = problem, problem.horizon
        self.hour_h = problem.horizon.hour_s / HOUR
        self.picks, self.known = picks, {}
        self.instant = [x for x in problem.limits if x.kind not in SUMMED]
        self.summed = [x for x in problem.limits if x.kind in SUMMED]
        self.work = problem.deferrable[0] if problem.deferrable else None
        if self.work is not None:
            self.rate = {o.pool: o.n_work_per_accelerator_h for o in self.work.options}

    def scenario_usd(self, s, orders):
        """The cheapest way through one scenario with these orders; inf: none."""
        n_q = self.time.shape[1]
        stock = np.zeros((len(self.problem.terms), n_q), dtype=int)
        usd, used = self._once()
        for (terms, q), n in orders:
            first = q + terms.n_lead_periods
            last = min(n_q, first + (terms.n_term_periods or n_q))
            stock[self.problem.terms.index(terms), first:last] += n
            more_usd, more_used = self._order(terms, q, s, span=(first, last))
            usd, used = usd + n * more_usd, used + n * more_used
        most = [t.n_nodes_max if t.is_committed else 0 for t in self.problem.terms]
        if np.any(stock > np.array(most)[:, None]):
            return np.inf
        costs, uses = np.array([usd]), used[None]
        for q in range(n_q):
            found = self._period(s, q, tuple(stock[:, q]))
            costs = (costs[:, None] + found[0]).ravel()
            uses = (uses[:, None] + found[1]).reshape(len(costs), len(self.summed))
        ends = np.array([x.most for x in self.summed])
        lawful = np.all(uses <= ends * (1 + 1e-9) + 1e-9, axis=1)
        return float(costs[lawful].min(initial=np.inf))

    def _once(self):
        usd = sum(o.once_usd for o in self.picks) * self.time.upfront_discount_frac[0]
        used = []
        for x in self.summed:
            mine = [o for o in self.picks if not x.pools or o.pool in x.pools]
            is_spend = x.kind == "spend" and not x.purchases and (not x.periods or 0 in x.periods)
            once = sum(o.once_usd for o in mine) if is_spend else 0.0
            used.append(sum(o.time_s for o in mine) if x.kind == "time" else once)
        return float(usd), np.array(used, dtype=float)

    def _order(self, terms, q, s, *, span):
        """Worth of one node ordered, and the money that limits count."""
        time, ratio = self.time, 1.0
        if terms.price_ratio is not None:
            ratio = terms.price_ratio[s, q]
        running = ratio * terms.usd_per_node_h * time.period_s / HOUR
        upfront = ratio * terms.upfront_usd
        usd = upfront * time.upfront_discount_frac[q]
        usd += running * time.running_discount_frac[slice(*span)].sum()
        if terms.residual_usd is not None:
            usd -= terms.residual_usd[span[1] - span[0]] * time.end_discount_frac
        used = []
        for x in self.summed:
            is_in = _counts(x, terms.pool, terms.purchase)
            at_once = upfront if not x.periods or q in x.periods else 0.0
            n_running = sum(not x.periods or k in x.periods for k in range(*span))
            money = {"upfront": at_once, "spend": at_once + n_running * running}
            used.append(is_in * money.get(x.kind, 0.0))
        return usd, np.array(used, dtype=float)

    def _period(self, s, q, stock):
        """Costs and uses of the summed limits for every lawful way through one period."""
        key = (s, q, stock)
        if key not in self.known:
            self.known[key] = self._tried_period(s, q, stock)
        return self.known[key]

    def _tried_period(self, s, q, stock):
        table = np.zeros((1, self._width()))
        for pool in self.problem.pools:
            mine = self._pool(pool, s, q, stock)
            table = (table[:, None] + mine[None]).reshape(-1, self._width())
            for k, x in enumerate(self.instant):
                if not x.periods or q in x.periods:
                    n_h = len(self.hour_h)
                    at = 2 + len(self.summed) + k * n_h
                    table = table[np.all(table[:, at : at + n_h] <= x.most + 1e-9, axis=1)]
        if self.work is not None:
            table = table[table[:, 1] >= self.work.n_work[s, q] - 1e-9]
        table = _undominated(table[:, [0, *range(2, 2 + len(self.summed))]])
        return table[:, 0], table[:, 1:]

    def _width(self):
        return 2 + len(self.summed) + len(self.instant) * len(self.hour_h)

    def _pool(self, pool, s, q, stock):
        """Rows: cost, work done, summed limits, instant limits by hour."""
        here = [o for o in self.picks if o.pool == pool.name]
        need = sum((o.need[s, q] for o in here), start=np.zeros(len(self.hour_h), dtype=int))
        need = need + max((o.n_reserve for o in here), default=0)
        given = [(t, n) for t, n in zip(self.problem.terms, stock, strict=True)]
        held = [(t, n) for t, n in given if t.pool == pool.name and t.is_committed]
        n_held = sum(n for _, n in held)
        rows = []
        for lit in range(pool.n_nodes_existing + 1):
            for rented in self._rented(pool, need, n_firm=n_held + lit):
                counts = [(t, np.full(len(need), n)) for t, n in held if n]
                counts += [(t, n) for t, n in rented if n.any()]
                row = self._row(pool, counts, (s, q), lit=np.full(len(need), lit), need=need)
                if row is not None:
                    rows.append(row)
        return np.array(rows).reshape(-1, self._width())

    def _rented(self, pool, need, *, n_firm):
        """Every count by the hour; without batch no more than is missing."""
        mine = [t for t in self.problem.terms if t.pool == pool.name and not t.is_committed]
        short = np.maximum(0, -(-need // pool.n_accelerators_per_node) - n_firm)
        ways = []
        for t in mine:
            low = short if t.purchase == "on_demand" else np.zeros_like(short)
            if np.any(low > t.n_nodes_max):
                return
            high = np.full_like(low, t.n_nodes_max) if self.work is not None else low
            spans = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
            ways.append([(t, np.array(n)) for n in product(*spans)])
        yield from product(*ways)

    def _row(self, pool, counts, at, *, lit, need):
        s, q = at
        total = sum((n for _, n in counts), start=lit)
        firm = sum((n for t, n in counts if t.purchase != "spot"), start=lit)
        free = firm * pool.n_accelerators_per_node - need
        if np.any(free < 0) or (pool.n_nodes_max is not None and total.max() > pool.n_nodes_max):
            return None
        bills = [(pool.existing_usd_per_node_h * (lit @ self.hour_h), "owned", "existing")]
        for t, n in counts:
            if not t.is_committed:
                ratio = 1.0 if t.price_ratio is None else t.price_ratio[s, q]
                bills.append((ratio * t.usd_per_node_h * (n @ self.hour_h), t.purchase, t.name))
        usd = sum(money for money, _, _ in bills) * self.time.running_discount_frac[q]
        done = self._done(pool, free, counts)
        nodes = [(n, t.purchase, t.is_on_site) for t, n in counts] + [(lit, "owned", True)]
        row = [usd, done]
        row += [self._summed(x, pool, q, bills=bills, nodes=nodes) for x in self.summed]
        for x in self.instant:
            row += list(_instant(x, pool, nodes))
        return row

    def _done(self, pool, free, counts):
        if self.work is None:
            return 0.0
        hours = free @ self.hour_h
        if self.work.may_use_spot:
            for t, n in counts:
                if t.purchase == "spot":
                    hours += pool.n_accelerators_per_node * t.useful_frac * (n @ self.hour_h)
        return self.rate[pool.name] * hours

    def _summed(self, x, pool, q, *, bills, nodes):
        if x.periods and q not in x.periods:
            return 0.0
        if x.kind == "spend":
            return sum(money * _counts(x, pool.name, purchase) for money, purchase, _ in bills)
        if x.kind not in ("energy", "carbon"):
            return 0.0
        per_hour = pool.mean_w * self.time.hour_s
        if x.kind == "carbon":
            per_hour = per_hour * pool.carbon_kg_per_j
        return sum(float(n @ per_hour) * _counts(x, pool.name, how) for n, how, _ in nodes)


def _counts(limit, pool, purchase):
    is_paid = not limit.purchases or purchase in limit.purchases
    return float(is_paid and (not limit.pools or pool in limit.pools))


def _instant(limit, pool, nodes):
    per_node = {
        "power": pool.max_w, "racks": pool.n_racks_per_node, "nodes": 1.0,
        "accelerators": float(pool.n_accelerators_per_node),
    }[limit.kind]  # fmt: skip
    site = limit.kind in ("power", "racks")
    used = [n * _counts(limit, pool.name, how) for n, how, here in nodes if here or not site]
    return per_node * sum(used, start=np.zeros(len(nodes[0][0])))


def _undominated(table):
    """Rows that no other beats in every column; only to keep what follows small."""
    if not len(table):
        return table
    if table.shape[1] == 1:
        return table.min(axis=0, keepdims=True)
    table = np.unique(table, axis=0)
    kept = []
    for row in table:
        if not any(np.all(other <= row) for other in kept):
            kept.append(row)
    return np.array(kept)

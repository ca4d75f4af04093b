"""Small selection problems drawn at random, and their answer by trying everything."""

from itertools import product

import numpy as np

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    FleetOption,
    Horizon,
    NamedLimit,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.selection.result import bill

HOUR = 3600.0


def worth_usd(problem, found):
    """Expected whole-life cost of a plan, not rounded to cents."""
    lines = bill._sums(
        problem, chosen=found.chosen, orders=found.orders, provisioned=found.provisioned
    )
    return float(sum(line.worth_usd for line in lines))


def owned_base(n_needed, weight, *, own_usd_per_h, rent_usd_per_h):
    """How many nodes to own, and the cost of that over all hours, in closed form.

    Node k is worth owning if it is needed for a larger share of the hours than the ratio of the
    two prices; need only falls with k, so the answer is the last such k.
    """
    total_h = float(weight.sum())
    pays = [
        k
        for k in range(1, int(n_needed.max(initial=0)) + 1)
        if weight[n_needed >= k].sum() * rent_usd_per_h > total_h * own_usd_per_h
    ]
    owned = max(pays, default=0)
    rented_h = float((weight * (n_needed - owned).clip(min=0)).sum())
    return owned, owned * total_h * own_usd_per_h + rented_h * rent_usd_per_h


def horizon(*, n_scenarios=1, n_periods=1, hours=(1.0,), discount=1.0):
    return Horizon(
        hour_s=floats(np.array(hours) * HOUR),
        upfront_discount_frac=floats(discount ** np.arange(n_periods)),
        running_discount_frac=floats(discount ** (np.arange(n_periods) + 0.5)),
        end_discount_frac=float(discount**n_periods),
        probability_frac=floats(np.full(n_scenarios, 1.0 / n_scenarios)),
    )


def draw(seed):
    """A problem small enough to try everything."""
    rng = np.random.default_rng(seed)
    n_s, n_q, n_h = rng.integers(1, 3), rng.integers(1, 3), rng.integers(1, 4)
    time = horizon(n_scenarios=n_s, n_periods=n_q, hours=rng.integers(1, 6, n_h), discount=0.9)
    pools, terms = [], []
    for a in range(2):
        name = f"pool{a}"
        pools.append(
            NodePool(
                name=name,
                accelerator=name,
                n_accelerators_per_node=int(rng.integers(1, 4)),
                max_w=float(rng.integers(5, 20) * 100),
                mean_w=float(rng.integers(3, 9) * 100),
                n_racks_per_node=0.25,
                n_nodes_existing=int(rng.choice([0, 0, 1])),
                existing_usd_per_node_h=0.4,
            )
        )
        terms += draw_terms(rng, name, n_q=n_q)
    options = [
        FleetOption(
            workload=f"work{w}",
            name=f"option{o}",
            pool=f"pool{rng.integers(0, 2)}",
            need=ints(rng.integers(0, 5, (n_s, n_q, n_h))),
            n_reserve=int(rng.choice([0, 0, 1, 2])),
            once_usd=float(rng.choice([0.0, 1.25])),
        )
        for w in range(rng.integers(1, 4))
        for o in range(rng.integers(1, 4))
    ]
    return SelectionProblem(
        horizon=time,
        pools=tuple(pools),
        terms=tuple(terms),
        options=tuple(options),
        limits=tuple(draw_limits(rng)),
    )


def draw_terms(rng, pool, *, n_q):
    def price(low, high):
        return float(np.round(rng.uniform(low, high), 2))

    found = []
    if rng.random() < 0.9:
        quota = None if rng.random() < 0.5 else int(rng.integers(0, 5))
        usd = price(2.0, 4.0)
        found.append(
            NodeTerms(
                name=f"{pool}-demand", pool=pool, purchase="on_demand", usd_per_node_h=usd,
                n_nodes_max=quota,
            )
        )  # fmt: skip
    if rng.random() < 0.7:
        found.append(
            NodeTerms(
                name=f"{pool}-own", pool=pool, purchase="owned", usd_per_node_h=price(0.1, 0.5),
                upfront_usd=price(2.0, 12.0), residual_usd=floats(1.0 / (1 + np.arange(n_q + 1))),
                n_lead_periods=int(rng.integers(0, 2)), n_nodes_max=int(rng.integers(1, 4)),
                is_on_site=True,
            )
        )  # fmt: skip
    if rng.random() < 0.5:
        found.append(
            NodeTerms(
                name=f"{pool}-reserve", pool=pool, purchase="reserved",
                usd_per_node_h=price(1.0, 2.5), n_term_periods=1, n_nodes_max=2,
            )
        )  # fmt: skip
    return found


def draw_limits(rng):
    if rng.random() < 0.4:
        yield NamedLimit(name="power", kind="power", most=float(rng.integers(0, 60) * 100))
    if rng.random() < 0.3:
        yield NamedLimit(name="capex", kind="upfront", most=float(rng.integers(0, 40)))
    if rng.random() < 0.3:
        yield NamedLimit(name="total", kind="accelerators", most=float(rng.integers(2, 12)))


def brute_force_usd(problem):
    """The lowest cost over every choice, order and recourse; None where nothing is lawful."""
    best = None
    groups = [[o for o in problem.options if o.workload == w] for w in problem.workloads]
    for picks in product(*groups):
        tried = [pool_plans(problem, pool, picks) for pool in problem.pools]
        cost, usage = tried[0]
        for more_cost, more_usage in tried[1:]:
            cost = (cost[:, None] + more_cost[None]).ravel()
            usage = (usage[:, None] + more_usage[None]).reshape(len(cost), *usage.shape[1:])
        lawful = np.isfinite(cost)
        for k, limit in enumerate(problem.limits):
            lawful &= usage[:, k].reshape(len(cost), -1).max(axis=1) <= limit.most + 1e-9
        if lawful.any():
            first = problem.horizon.upfront_discount_frac[0]
            once = sum(pick.once_usd for pick in picks) * first
            found = float(cost[lawful].min()) + once
            best = found if best is None else min(best, found)
    return best


def pool_plans(problem, pool, picks):
    """Cost and use of the limits [plan, limit, scenario, period, hour] of every set of orders."""
    time = problem.horizon
    n_q = time.shape[1]
    here = [pick for pick in picks if pick.pool == pool.name]
    need = sum((pick.need for pick in here), start=np.zeros(time.shape, dtype=int))
    need = need + max((pick.n_reserve for pick in here), default=0)
    nodes = -(-need // pool.n_accelerators_per_node)
    orders = [
        (terms, t)
        for terms in problem.terms
        if terms.pool == pool.name and terms.is_committed
        for t in range(n_q - terms.n_lead_periods)
    ]
    counts = list(product(*[range(terms.n_nodes_max + 1) for terms, _ in orders]))
    plans = np.array(counts, dtype=int).reshape(len(counts), len(orders))
    held = np.zeros((len(plans), n_q))
    site = np.zeros((len(plans), n_q))
    upfront, cost, lawful = (np.zeros(len(plans)) for _ in range(3))
    for terms in {terms.name: terms for terms, _ in orders}.values():
        mine = np.zeros((len(plans), n_q))
        for column, (other, t) in enumerate(orders):
            if other is terms:
                first = t + terms.n_lead_periods
                last = min(n_q, first + (terms.n_term_periods or n_q))
                mine[:, first:last] += plans[:, column][:, None]
                upfront += plans[:, column] * terms.upfront_usd
                cost += plans[:, column] * order_usd(time, terms, (t, first, last))
        lawful += (mine > terms.n_nodes_max).any(axis=1)
        held += mine
        site += mine * terms.is_on_site
    cost = np.where(lawful > 0, np.inf, cost)
    rest = np.maximum(0, nodes[None] - held[:, None, :, None])
    return with_recourse(problem, pool, (cost, upfront, held, site, rest))


def order_usd(time, terms, periods):
    ordered, first, last = periods
    served = time.running_discount_frac[first:last].sum() * time.period_s / HOUR
    usd = terms.upfront_usd * time.upfront_discount_frac[ordered] + terms.usd_per_node_h * served
    if terms.residual_usd is not None:
        usd -= terms.residual_usd[last - first] * time.end_discount_frac
    return usd


def with_recourse(problem, pool, plans):
    """Every number of existing nodes switched on, the remainder rented."""
    cost, upfront, held, site, rest = plans
    time = problem.horizon
    n_s, n_q, n_h = time.shape
    demand = [t for t in problem.terms if t.pool == pool.name and t.purchase == "on_demand"]
    price = demand[0].usd_per_node_h if demand else 0.0  # none to be had: the quota says so
    quota = (np.inf if demand[0].n_nodes_max is None else demand[0].n_nodes_max) if demand else 0
    weights = time.probability_frac[:, None, None] * time.running_discount_frac[:, None]
    weights = weights * (time.hour_s / HOUR)
    costs, usages = [], []
    for lit in product(range(pool.n_nodes_existing + 1), repeat=n_s * n_q):
        on = np.array(lit).reshape(n_s, n_q)
        burst = np.maximum(0, rest - on[None, :, :, None])
        short = (burst > quota).any(axis=(1, 2, 3))
        rent = burst * price
        running = (on[:, :, None] * weights).sum() * pool.existing_usd_per_node_h
        usd = cost + (rent * weights).sum(axis=(1, 2, 3)) + running
        costs.append(np.where(short, np.inf, usd))
        count = held[:, None, :, None] + on[None, :, :, None] + burst
        on_site = np.broadcast_to(site[:, None, :, None] + on[None, :, :, None], count.shape)
        usage = {
            "power": on_site * pool.max_w,
            "upfront": np.broadcast_to(upfront[:, None, None, None], count.shape),
            "accelerators": count * pool.n_accelerators_per_node,
        }
        kinds = [usage[limit.kind] for limit in problem.limits]
        blank = np.zeros((len(cost), 0, n_s, n_q, n_h))
        usages.append(np.stack(kinds, axis=1) if kinds else blank)
    return np.concatenate(costs), np.concatenate(usages)

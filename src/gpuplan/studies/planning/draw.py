"""What chosen nodes draw at the load they carry, in: a Choice; out: energy, and the table anew."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.plan.selection import Conflict, NodePool, NodeTerms, Selection, WallDraw
from gpuplan.domain.ranges import total
from gpuplan.studies.market.owned import Standing
from gpuplan.studies.planning.options import FleetTable, pool_name
from gpuplan.studies.planning.rows import FleetRow

SAME_FRAC = 1e-9  # below, a draw has not changed; coarser, equal fleets cost by where they began
MOST_ROUNDS = 3
DRAWN = ("energy", "carbon", "weighted")  # objectives that count watts


def with_draw(
    table: FleetTable,
    found: Selection,
    standing: Sequence[Standing],
    *,
    choose: Callable[[FleetTable], Selection | Conflict],
) -> tuple[FleetTable, Selection]:
    """Table and choice with every node's draw at the load that it carries.

    Where energy is paid for or minimized, a new draw is a new price: chosen again until it stays.
    """
    for _ in range(MOST_ROUNDS):
        drawn = at_draws(table, node_means_w(table, found), standing)
        if drawn is None:
            break
        is_priced = drawn.rates != table.rates or _existing_usd(drawn) != _existing_usd(table)
        table = drawn
        if is_priced or table.problem.objective in DRAWN or _limits_carbon(table):
            again = choose(table)
            found = again if isinstance(again, Selection) else found
    return table, found


def at_expected_draw(table: FleetTable, standing: Sequence[Standing]) -> FleetTable:
    """The table with each pool at the least draw of the fleets that could run there alone.

    Nodes that would be nearly idle must not lose for energy that they would never draw.
    """
    hour_s, means = table.problem.horizon.hour_s, {}
    for pool in table.problem.pools:
        rows = [row for row in table.by_name.values() if row.option.pool == pool.name]
        if pool.wall is None or not rows:
            continue
        found = [_mean_w([row], pool, _provisioned(row, pool), pool.wall, hour_s) for row in rows]
        given = pool.wall.given_mean_w
        means[pool.name] = min(found) if given is None else given
    return at_draws(table, means, standing) or table


def _provisioned(row: FleetRow, pool: NodePool) -> Floats:
    """Nodes that one service alone keeps, by period and hour."""
    need = row.option.need[0] + row.option.n_reserve
    return floats(np.maximum(1.0, np.ceil(need / pool.n_accelerators_per_node - 1e-9)))


def _existing_usd(table: FleetTable) -> list[float]:
    return [pool.existing_usd_per_node_h for pool in table.problem.pools]


def _limits_carbon(table: FleetTable) -> bool:
    return any(limit.kind == "carbon" for limit in table.problem.limits)


def node_means_w(table: FleetTable, selection: Selection) -> dict[str, float]:
    """Mean draw of one node while it is held, by pool; pools of unknown draw are left out."""
    found = {}
    for pool in table.problem.pools:
        provisioned = sum(
            (h.n_nodes[0] for h in selection.provisioned if h.pool == pool.name), np.zeros(1)
        )
        if pool.wall is None or not provisioned.max(initial=0):
            continue
        rows = [table.row_of(option) for option in selection.chosen if option.pool == pool.name]
        hour_s = table.problem.horizon.hour_s
        mean_w = _mean_w(rows, pool, floats(provisioned), pool.wall, hour_s)
        found[pool.name] = mean_w if pool.wall.given_mean_w is None else pool.wall.given_mean_w
    return found


def _mean_w(
    rows: Sequence[FleetRow], pool: NodePool, provisioned: Floats, wall: WallDraw, hour_s: Floats
) -> float:
    busy_w, busy = np.zeros(provisioned.shape), np.zeros(provisioned.shape)
    for row in rows:
        busy_w = busy_w + _row_w(row, wall)
        busy = busy + row.option.need[0]
    idle = np.maximum(0.0, provisioned * pool.n_accelerators_per_node - busy)
    accelerators_j = float(((busy_w + idle * wall.idle_w) * hour_s).sum())
    node_s = float((provisioned * hour_s).sum())
    mean = wall.host_w + wall.ratio * accelerators_j / node_s
    return min(mean, pool.max_w)


def _row_w(row: FleetRow, wall: WallDraw) -> Floats:
    """Watts of the accelerators that one service keeps at work, by period and hour."""
    sized, need = row.sized, row.option.need[0]
    if sized.power is None:
        busy = sized.utilization.peak_frac if sized.utilization.peak_frac is not None else 1.0
        return floats(need * (wall.idle_w + busy * max(0.0, wall.busy_w - wall.idle_w)))
    n_each = row.sized.candidate.n_accelerators_for(1)
    replicas = np.maximum(need / n_each, 1e-9)
    loads = row.load_frac if len(row.load_frac) else np.ones(need.shape[-1])
    return floats(replicas * sized.power.at(floats(loads * (sized.n_serving / replicas))))


def at_draws(
    table: FleetTable, means_w: dict[str, float], standing: Iterable[Standing]
) -> FleetTable | None:
    """The table with energy at these draws in prices and objective; None where nothing changes."""
    ratios = {
        pool.name: means_w[pool.name] / pool.mean_w
        for pool in table.problem.pools
        if pool.name in means_w and pool.mean_w
    }
    if all(abs(ratio - 1.0) < SAME_FRAC for ratio in ratios.values()):
        return None
    there = {pool_name(each.rate): _energy_usd_per_h(each.rate) for each in standing}
    pools = tuple(
        replace(
            pool,
            mean_w=means_w.get(pool.name, pool.mean_w),
            existing_usd_per_node_h=pool.existing_usd_per_node_h
            + (ratios.get(pool.name, 1.0) - 1.0) * _paid_energy(pool, there),
        )
        for pool in table.problem.pools
    )
    rates = {
        name: at_ratio(rate, ratios.get(pool_name(rate), 1.0)) for name, rate in table.rates.items()
    }
    terms = tuple(_repriced(each, table.rates, rates) for each in table.problem.terms)
    return table._replace(problem=replace(table.problem, pools=pools, terms=terms), rates=rates)


def _paid_energy(pool: NodePool, there: dict[str, float]) -> float:
    """USD an hour that a node which stands there pays for energy at the draw it has now."""
    assumed = pool.wall.assumed_w if pool.wall else 0.0
    return there.get(pool.name, 0.0) * pool.mean_w / assumed if assumed else 0.0


def _energy_usd_per_h(rate: NodeRate) -> float:
    return sum(part.usd_per_h.mid for part in rate.parts if part.name == "energy")


def at_ratio(rate: NodeRate, ratio: float) -> NodeRate:
    """The rate with its energy at this ratio of what was assumed."""
    if ratio == 1.0 or not _energy_usd_per_h(rate):
        return rate
    parts = tuple(
        replace(part, usd_per_h=part.usd_per_h.times(ratio)) if part.name == "energy" else part
        for part in rate.parts
    )
    return replace(rate, parts=parts, price_usd_per_h=total(part.usd_per_h for part in parts))


def _repriced(terms: NodeTerms, old: dict[str, NodeRate], new: dict[str, NodeRate]) -> NodeTerms:
    more = new[terms.name].price_usd_per_h.mid - old[terms.name].price_usd_per_h.mid
    return replace(terms, usd_per_node_h=terms.usd_per_node_h + more)

"""A plan when inputs are not what was assumed: samples, regret, tornado, named prices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import PriceScenario, RegretRow, TornadoBar, Uncertainty
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.ranges import Range
from gpuplan.units import HOURS_PER_MONTH

Z_80 = 1.2816  # deviations of a normal law that hold 80 % between them
DEMAND_SPREAD_FRAC = 0.2  # Assumption: demand lies within this of the forecast, four times of five
PRICE_MOVES = (("prices stay", 1.0), ("all fall by 20 %", 0.8), ("all fall by 40 %", 0.6),
               ("all rise by 20 %", 1.2))  # fmt: skip
# Assumption: prices move with equal chance as the named scenarios do.
PRICE_RATIOS = (0.6, 0.8, 1.0, 1.2)


class Draws(NamedTuple):
    """Samples of what is not known; ratios to what was assumed."""

    demand: Floats
    prices: Mapping[str, Floats]  # by accelerator: each kind moves by itself
    growth: Floats  # ratio of the mean load over the horizon
    speed: Floats  # standard normal, scaled by each fleet's own spread


def draws_of(n: int, seed: int, growth: Range, *, n_months: float, kinds: Iterable[str]) -> Draws:
    """Independent draws, one stream per cause, the same for every fleet."""
    streams = np.random.SeedSequence(seed).spawn(4)
    demand, price, grown, speed = (np.random.default_rng(stream) for stream in streams)
    sd = np.log1p(DEMAND_SPREAD_FRAC) / Z_80
    rates = np.full(n, growth.mid)
    if growth.high > growth.low:
        rates = grown.triangular(growth.low, growth.mid, growth.high, n)
    return Draws(
        demand=floats(demand.lognormal(-(sd**2) / 2, sd, n)),
        prices={kind: floats(price.choice(PRICE_RATIOS, n)) for kind in sorted(set(kinds))},
        growth=floats(mean_growth(rates, n_months) / mean_growth(growth.mid, n_months)),
        speed=floats(speed.standard_normal(n)),
    )


def mean_growth(per_month_frac: float | Floats, n_months: float) -> Floats:
    """Mean of the load over the months, over that of the first."""
    months = np.arange(max(1, round(n_months)))
    grown = (1 + np.asarray(per_month_frac, dtype=np.float64)[..., None]) ** months
    return np.asarray(grown.mean(axis=-1))


class Fleets(NamedTuple):
    """Fleets of one workload to compare, the chosen one first."""

    demand: DemandProfile
    curves: Sequence[FleetCurve]
    names: Sequence[str]  # of the curves, for people
    base_usd_per_month: float  # of the chosen plan, as billed


def uncertainty_of(found: Fleets, draws: Draws, *, seed: int) -> Uncertainty:
    """Every fleet over all samples, resized in each; the planned count is judged as it stands."""
    cost = np.array([_sampled(curve, found.demand, draws) for curve in found.curves])
    chosen = found.curves[0]
    scale = found.base_usd_per_month / max(_at(chosen, found.demand), 1e-9)
    regret = cost - cost.min(axis=0)
    kept = np.array([_kept_frac(curve, found, draws) for curve in found.curves])
    p95 = np.percentile(regret, 95, axis=1)
    order = np.argsort(cost.mean(axis=1), kind="stable")
    rows = tuple(
        RegretRow(
            fleet=found.names[i],
            mean_usd_per_month=float(cost[i].mean() * scale),
            p95_regret_usd_per_month=float(p95[i] * scale),
            kept_frac=float(kept[i]),
        )
        for i in order
    )
    low, high = (float(x) * scale for x in np.percentile(cost[0], [10, 90]))
    return Uncertainty(
        n_samples=len(draws.demand),
        seed=seed,
        cost_usd_per_month=Estimate(
            value=found.base_usd_per_month,
            low=min(low, found.base_usd_per_month),
            high=max(high, found.base_usd_per_month),
            tier="simulated",
        ),
        kept_frac=float(kept[0]),
        least_regret=found.names[int(np.argmin(p95))],
        rows=rows[:6],
        tornado=_tornado(found, draws, scale),
        prices=_prices(found, scale),
        inputs=("demand", "growth", "prices", "speed of the model"),
    )


def whole_uncertainty(
    parts: Sequence[Fleets], draws: Draws, *, base_usd_per_month: float, seed: int
) -> Uncertainty:
    """All workloads in the same samples: costs add up, and every promise must hold at once."""
    if len(parts) == 1:
        return uncertainty_of(parts[0], draws, seed=seed)
    each = [uncertainty_of(part, draws, seed=seed) for part in parts]
    names = [part.demand.workload for part in parts]
    sampled = sum(_sampled(part.curves[0], part.demand, draws) for part in parts)
    # Nodes that workloads share are billed once: the sum of parts is brought to the bill.
    scale = base_usd_per_month / max(sum(part.base_usd_per_month for part in parts), 1e-9)
    low, high = (float(x) * scale for x in np.percentile(sampled, [10, 90]))
    kept = np.logical_and.reduce([_kept(part.curves[0], part, draws) for part in parts])
    return replace(
        each[0],
        cost_usd_per_month=Estimate(
            value=base_usd_per_month,
            low=min(low, base_usd_per_month),
            high=max(high, base_usd_per_month),
            tier="simulated",
        ),
        kept_frac=float(kept.mean()),
        least_regret="; ".join(
            f"{name}: {found.least_regret}" for name, found in zip(names, each, strict=True)
        ),
        rows=tuple(
            replace(row, fleet=f"{name}: {row.fleet}")
            for name, found in zip(names, each, strict=True)
            for row in found.rows[:2]
        ),
        tornado=_summed_bars(parts, each, scale),
        prices=_summed_prices(each, scale),
    )


def _summed_bars(
    parts: Sequence[Fleets], each: Sequence[Uncertainty], scale: float
) -> tuple[TornadoBar, ...]:
    """One input moves for all workloads at once; one that it does not touch stays as it is."""
    spans = {bar.what: bar.span for found in each for bar in found.tornado}
    bars = []
    for what, span in spans.items():
        ends = np.zeros(2)
        for part, found in zip(parts, each, strict=True):
            mine = [bar for bar in found.tornado if bar.what == what]
            usd = part.base_usd_per_month
            ends += [mine[0].low_usd_per_month, mine[0].high_usd_per_month] if mine else [usd, usd]
        low, high = (float(end) * scale for end in ends)
        bars.append(
            TornadoBar(what=what, span=span, low_usd_per_month=low, high_usd_per_month=high)
        )
    return tuple(sorted(bars, key=lambda b: b.low_usd_per_month - b.high_usd_per_month))


def _summed_prices(each: Sequence[Uncertainty], scale: float) -> tuple[PriceScenario, ...]:
    rows = []
    for name, _ in PRICE_MOVES:
        mine = [next(row for row in found.prices if row.name == name) for found in each]
        rows.append(
            PriceScenario(
                name=name,
                usd_per_month=sum(row.usd_per_month for row in mine) * scale,
                best_fleet="; ".join(row.best_fleet for row in mine),
                best_usd_per_month=sum(row.best_usd_per_month for row in mine) * scale,
            )
        )
    return tuple(rows)


def _at(
    curve: FleetCurve, demand: DemandProfile, *, load_ratio: float = 1.0, speed_ratio: float = 1.0
) -> float:
    """USD a month at a load and a speed."""
    weights = demand.hours.hours_per_week / demand.hours.hours_per_week.sum()
    loads = floats(load_ratio * demand.peak_of(0, 0) * demand.hours.load_frac)
    return float(curve.usd_per_h(loads, weights, speed_ratio)) * HOURS_PER_MONTH


def _sampled(curve: FleetCurve, demand: DemandProfile, draws: Draws) -> Floats:
    weights = demand.hours.hours_per_week / demand.hours.hours_per_week.sum()
    ratio = draws.demand * draws.growth
    loads = ratio[:, None] * demand.peak_of(0, 0) * demand.hours.load_frac[None, :]
    hourly = curve.usd_per_h(floats(loads), weights, _speed(curve, draws)[:, None])
    return _moved(curve, hourly, draws.prices[curve.kind]) * HOURS_PER_MONTH


def _moved(curve: FleetCurve, usd_per_h: Floats | float, ratio: Floats | float) -> Floats:
    """The price after rents have moved; what is owned or committed stays as it is."""
    base = curve.n_base_nodes * curve.base_usd_per_node_h
    moving = 1.0 if curve.is_committed else ratio
    return np.asarray(base + (np.asarray(usd_per_h) - base) * moving)


def _speed(curve: FleetCurve, draws: Draws) -> Floats:
    return np.asarray(np.exp(curve.speed_log_sd_ratio * draws.speed))


def _kept_frac(curve: FleetCurve, found: Fleets, draws: Draws) -> float:
    return float(np.mean(_kept(curve, found, draws)))


def _kept(curve: FleetCurve, found: Fleets, draws: Draws) -> NDArray[np.bool_]:
    """Samples in which the nodes of today's plan carry the peak, all of them up."""
    peak = found.demand.peak_of(0, 0)
    planned = int(curve.n_replicas(floats([peak]))[0])
    loads = floats(draws.demand * peak)
    capacity = planned * curve.n_load_per_replica * _speed(curve, draws)
    return np.asarray(loads <= capacity * (1 + 1e-9))


def _tornado(found: Fleets, draws: Draws, scale: float) -> tuple[TornadoBar, ...]:
    chosen, demand = found.curves[0], found.demand
    base = _at(chosen, demand)

    def bar(what: str, span: str, low: float, high: float) -> TornadoBar:
        ends = sorted((low * scale, high * scale))
        return TornadoBar(
            what=what, span=span, low_usd_per_month=ends[0], high_usd_per_month=ends[1]
        )

    load = [float(x) for x in np.percentile(draws.demand, [10, 90])]
    grown = [float(x) for x in np.percentile(draws.growth, [10, 90])]
    speed = [float(np.exp(z * chosen.speed_log_sd_ratio)) for z in (-Z_80, Z_80)]
    price = [1.0, 1.0] if chosen.is_committed else [min(PRICE_RATIOS), max(PRICE_RATIOS)]
    bars = [
        bar("demand", _span(load, "the forecast"),
            *(_at(chosen, demand, load_ratio=ratio) for ratio in load)),
        bar("growth", _span(grown, "the middle"),
            *(_at(chosen, demand, load_ratio=ratio) for ratio in grown)),
        bar("prices", _span(price, "today's"),
            *(float(_moved(chosen, base / HOURS_PER_MONTH, ratio)) * HOURS_PER_MONTH
              for ratio in price)),
        bar("speed of the model", _span(speed, "the prediction"),
            *(_at(chosen, demand, speed_ratio=ratio) for ratio in speed)),
    ]  # fmt: skip
    moving = [b for b in bars if b.high_usd_per_month > b.low_usd_per_month * (1 + 1e-9)]
    return tuple(sorted(moving, key=lambda b: b.low_usd_per_month - b.high_usd_per_month))


def _span(ratios: list[float], of: str) -> str:
    return f"{ratios[0]:.0%} … {ratios[1]:.0%} of {of}"


def _prices(found: Fleets, scale: float) -> tuple[PriceScenario, ...]:
    """Named movements: all together, then the chosen kind against the others."""
    chosen = found.curves[0]
    kind = chosen.kind
    moves = [(name, ratio, ratio) for name, ratio in PRICE_MOVES]
    if len({curve.kind for curve in found.curves}) > 1:
        moves += [
            (f"{kind} alone rises by 20 %", 1.2, 1.0),
            (f"all but {kind} fall by 20 %", 1.0, 0.8),
            (f"all but {kind} fall by 40 %", 1.0, 0.6),
        ]
    rows = []
    for name, own, other in moves:
        costs = [
            float(
                _moved(
                    curve,
                    _at(curve, found.demand) / HOURS_PER_MONTH,
                    own if curve.kind == kind else other,
                )
            )
            * HOURS_PER_MONTH
            * scale
            for curve in found.curves
        ]
        best = int(np.argmin(costs))
        rows.append(
            PriceScenario(
                name=name,
                usd_per_month=costs[0],
                best_fleet=found.names[best],
                best_usd_per_month=costs[best],
            )
        )
    return tuple(rows)


def assumed(*, is_run: bool = False) -> tuple[Assumption, ...]:
    """What the samples rest on; a run has no demand that could be off."""
    told = (
        Assumption(
            what="how far demand may be off",
            value=f"±{DEMAND_SPREAD_FRAC:.0%} in four of five cases",
            why="no forecast error is known; used for ranges, not for sizing",
            change="--samples 0 leaves it out",
        ),
        Assumption(
            what="how prices may move",
            value="−40 %, −20 %, unchanged or +20 %, equally likely",
            why="named scenarios, no trend: prices of accelerators have risen too",
            change="--samples 0 leaves it out",
        ),
    )
    return told[1:] if is_run else told

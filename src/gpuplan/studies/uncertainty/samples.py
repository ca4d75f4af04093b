"""A plan when inputs are not what was assumed: samples, regret, tornado, named prices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.candidates.risk import DEMAND_SPREAD_FRAC, Z_80
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import Curve, PriceScenario, RegretRow, TornadoBar, Uncertainty
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.ranges import Range
from gpuplan.studies.planning.billed import BilledLoads
from gpuplan.studies.planning.curves import costs_usd_per_month
from gpuplan.units import HOURS_PER_MONTH

# Assumption: prices move with equal chance as the named scenarios do.
PRICE_MOVES = {
    "prices stay": 1.0,
    "all fall by 20 %": 0.8,
    "all fall by 40 %": 0.6,
    "all rise by 20 %": 1.2,
}
PRICE_RATIOS = tuple(sorted(PRICE_MOVES.values()))
N_ROWS = 6


class Samples(NamedTuple):
    """Samples of the uncertain inputs, as ratios to what was assumed."""

    demand: Floats
    prices: Mapping[str, Floats]  # by accelerator: each kind moves by itself
    growth: Floats  # ratio of the mean load over the horizon
    speed: Floats  # standard normal, scaled by each fleet's own spread


def draw_samples(
    n: int, seed: int, growth: Range, *, n_months: float, kinds: Iterable[str]
) -> Samples:
    """Independent samples, one stream per cause, the same for every fleet."""
    streams = np.random.SeedSequence(seed).spawn(4)
    demand, price, grown, speed = (np.random.default_rng(stream) for stream in streams)
    sd = np.log1p(DEMAND_SPREAD_FRAC) / Z_80
    rates = np.full(n, growth.mid)
    if growth.high > growth.low:
        rates = grown.triangular(growth.low, growth.mid, growth.high, n)
    return Samples(
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


class SampledFleets(NamedTuple):
    """Fleets over all samples, the chosen one first."""

    names: Sequence[str]  # for people
    usd_per_month: Floats  # [fleet, sample]
    is_met: NDArray[np.bool_]  # [fleet, sample] whether every SLO is met
    base_usd_per_month: float  # of the chosen plan, as billed

    def uncertainty(
        self,
        *,
        seed: int,
        tornado: Sequence[TornadoBar],
        prices: tuple[PriceScenario, ...],
        inputs: tuple[str, ...],
    ) -> Uncertainty:
        """Range, SLO attainment and regret of the chosen fleet, and of the others beside it."""
        usd = self.usd_per_month
        p95 = np.percentile(usd - usd.min(axis=0), 95, axis=1)
        rows = tuple(
            RegretRow(
                fleet=self.names[i],
                mean_usd_per_month=float(usd[i].mean()),
                p95_regret_usd_per_month=float(p95[i]),
                kept_frac=float(self.is_met[i].mean()),
            )
            for i in np.argsort(usd.mean(axis=1), kind="stable")
        )
        moving = [b for b in tornado if b.high_usd_per_month > b.low_usd_per_month * (1 + 1e-9)]
        return Uncertainty(
            n_samples=usd.shape[1],
            seed=seed,
            cost_usd_per_month=ranged(self.base_usd_per_month, usd[0]),
            kept_frac=float(self.is_met[0].mean()),
            least_regret=self.names[int(np.argmin(p95))],
            rows=rows[:N_ROWS],
            tornado=widest_first(moving),
            prices=prices,
            inputs=inputs,
        )


def ranged(usd: float, samples: Floats) -> Estimate:
    """A cost with the 80 % range of its samples."""
    low, high = (float(x) for x in np.percentile(samples, [10, 90]))
    return Estimate(value=usd, low=min(low, usd), high=max(high, usd), tier="simulated")


def widest_first(bars: Iterable[TornadoBar]) -> tuple[TornadoBar, ...]:
    """Bars in falling order of their width."""
    return tuple(sorted(bars, key=lambda b: b.low_usd_per_month - b.high_usd_per_month))


def tornado_bar(what: str, ratios: Sequence[float], of: str, usd: Iterable[float]) -> TornadoBar:
    """How far one input alone moves the cost: its ratios at both ends, and the cost there."""
    low, high = sorted(usd)
    span = f"{ratios[0]:.0%} … {ratios[1]:.0%} of {of}"
    return TornadoBar(what=what, span=span, low_usd_per_month=low, high_usd_per_month=high)


def price_scenario(name: str, fleets: Sequence[str], usd: Sequence[float]) -> PriceScenario:
    """What the first fleet costs under a movement of prices, and which is the cheapest then."""
    best = int(np.argmin(usd))
    return PriceScenario(
        name=name,
        usd_per_month=usd[0],
        best_fleet=fleets[best],
        best_usd_per_month=usd[best],
    )


class ComparedFleets(NamedTuple):
    """Fleets of one workload to compare, the chosen one first."""

    demand: DemandProfile
    curves: Sequence[FleetCurve]
    names: Sequence[str]  # of the curves, for people
    base_usd_per_month: float  # of the chosen plan, as billed
    billed: BilledLoads  # the chosen fleet over its load
    levels_usd: Sequence[float]  # of every fleet, as billed

    def usd(self, place: int, *, price: float = 1.0) -> float:
        """USD a month of a fleet at the planned load, rents having moved."""
        if place == 0:
            return float(self.billed.usd(1.0, price))
        return float(_after_price_move(self.curves[place], self.levels_usd[place], price))

    def over_load(self, place: int, factors: Floats) -> Floats:
        """USD a month of a fleet at multiples of the planned load."""
        if place == 0:
            return self.billed.usd(factors)
        curve = self.curves[place]
        now = float(costs_usd_per_month(curve, self.demand, floats([1.0]))[0])
        ratio = self.levels_usd[place] / max(now, 1e-9)
        return floats(costs_usd_per_month(curve, self.demand, factors) * ratio)

    def sampled(self, place: int, samples: Samples) -> Floats:
        """[sample] USD a month of a fleet that is resized in each sample."""
        curve, prices = self.curves[place], samples.prices[self.curves[place].kind]
        loads, speed = floats(samples.demand * samples.growth), _speed(curve, samples)
        if place == 0:
            return self.billed.usd(floats(loads / speed), prices)
        now = float(costs_usd_per_month(curve, self.demand, floats([1.0]))[0])
        usd = costs_usd_per_month(curve, self.demand, loads, speed[:, None])
        return _after_price_move(curve, usd, prices) * self.levels_usd[place] / max(now, 1e-9)


def cost_curves(fleets: ComparedFleets, *, unit: str, n_most: int = 4) -> tuple[Curve, ...]:
    """Monthly cost over load for the best few kinds, the chosen one first, as lines of a chart."""
    factors, peak = floats(np.linspace(0.1, 3.0, 59)), fleets.demand.peak_of(0, 0)
    others = sorted(range(1, len(fleets.curves)), key=lambda place: fleets.levels_usd[place])
    return tuple(
        Curve(
            chart=f"Monthly cost of {fleets.demand.workload} over load",
            name=fleets.curves[place].kind,
            x_name=f"peak load, {unit}",
            y_name="USD/month",
            x=_rounded(floats(factors * peak)),
            y=_rounded(fleets.over_load(place, factors)),
        )
        for place in [0, *others][:n_most]
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)


def uncertainty_of(fleets: ComparedFleets, samples: Samples, *, seed: int) -> Uncertainty:
    """Every fleet over all samples, resized in each; the planned count is judged as it stands."""
    sampled = SampledFleets(
        fleets.names,
        np.array([fleets.sampled(place, samples) for place in range(len(fleets.curves))]),
        np.array([_is_met(curve, fleets.demand, samples) for curve in fleets.curves]),
        fleets.base_usd_per_month,
    )
    return sampled.uncertainty(
        seed=seed,
        tornado=_tornado(fleets, samples),
        prices=tuple(_prices(fleets)),
        inputs=("demand", "growth", "prices", "predicted throughput"),
    )


def whole_uncertainty(
    parts: Sequence[ComparedFleets], samples: Samples, *, base_usd_per_month: float, seed: int
) -> Uncertainty:
    """All workloads in the same samples: costs add up, and every SLO must be met at once."""
    each = [uncertainty_of(part, samples, seed=seed) for part in parts]
    if len(parts) == 1:
        return each[0]
    named = [(part.demand.workload, found) for part, found in zip(parts, each, strict=True)]
    # Nodes that workloads share are billed once: the sum of parts is brought to the bill.
    scale = base_usd_per_month / max(sum(part.base_usd_per_month for part in parts), 1e-9)
    usd = np.sum([part.sampled(0, samples) for part in parts], axis=0)
    met = np.logical_and.reduce([_is_met(p.curves[0], p.demand, samples) for p in parts])
    return replace(
        each[0],
        cost_usd_per_month=ranged(base_usd_per_month, floats(usd * scale)),
        kept_frac=float(met.mean()),
        least_regret="; ".join(f"{name}: {found.least_regret}" for name, found in named),
        rows=tuple(
            replace(row, fleet=f"{name}: {row.fleet}")
            for name, found in named
            for row in found.rows[:2]
        ),
        tornado=_summed_bars(parts, each, scale),
        prices=tuple(_summed_prices(each, scale)),
    )


def with_runs_beside(found: Uncertainty, runs: Estimate) -> Uncertainty:
    """Ranges of services with runs beside them: what moves services leaves the runs as they are."""
    cost, usd = found.cost_usd_per_month, runs.value
    return replace(
        found,
        cost_usd_per_month=replace(
            cost, value=cost.value + usd, low=cost.low + runs.low, high=cost.high + runs.high
        ),
        tornado=tuple(
            replace(
                bar,
                low_usd_per_month=bar.low_usd_per_month + usd,
                high_usd_per_month=bar.high_usd_per_month + usd,
            )
            for bar in found.tornado
        ),
        prices=tuple(
            replace(
                row,
                usd_per_month=row.usd_per_month + usd,
                best_usd_per_month=row.best_usd_per_month + usd,
            )
            for row in found.prices
        ),
    )


def _summed_bars(
    parts: Sequence[ComparedFleets], each: Sequence[Uncertainty], scale: float
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
    return widest_first(bars)


def _summed_prices(each: Sequence[Uncertainty], scale: float) -> Iterable[PriceScenario]:
    for name in PRICE_MOVES:
        mine = [next(row for row in found.prices if row.name == name) for found in each]
        yield PriceScenario(
            name=name,
            usd_per_month=sum(row.usd_per_month for row in mine) * scale,
            best_fleet="; ".join(row.best_fleet for row in mine),
            best_usd_per_month=sum(row.best_usd_per_month for row in mine) * scale,
        )


def _after_price_move(
    curve: FleetCurve, usd_per_month: Floats | float, ratio: Floats | float
) -> Floats:
    """The cost after rents have moved; what is owned or committed stays as it is."""
    base = curve.n_base_nodes * curve.base_usd_per_node_h * HOURS_PER_MONTH
    moving = 1.0 if curve.is_committed else ratio
    return np.asarray(base + (np.asarray(usd_per_month) - base) * moving)


def _speed(curve: FleetCurve, samples: Samples) -> Floats:
    return np.asarray(np.exp(curve.speed_log_sd_ratio * samples.speed))


def _is_met(curve: FleetCurve, demand: DemandProfile, samples: Samples) -> NDArray[np.bool_]:
    """[sample] whether the nodes of today's plan carry the peak, all of them up."""
    peak = demand.peak_of(0, 0)
    planned = int(curve.n_replicas(floats([peak]))[0])
    capacity = planned * curve.n_load_per_replica * _speed(curve, samples)
    return np.asarray(samples.demand * peak <= capacity * (1 + 1e-9))


def _tornado(fleets: ComparedFleets, samples: Samples) -> list[TornadoBar]:
    chosen, billed = fleets.curves[0], fleets.billed
    load, grown = (
        [float(x) for x in np.percentile(ratios, [10, 90])]
        for ratios in (samples.demand, samples.growth)
    )
    speed = [float(np.exp(z * chosen.speed_log_sd_ratio)) for z in (-Z_80, Z_80)]
    price = [1.0, 1.0] if chosen.is_committed else [PRICE_RATIOS[0], PRICE_RATIOS[-1]]
    slow = [1.0 / ratio for ratio in speed]
    by_load, by_growth, by_speed = (billed.usd(floats(x)).tolist() for x in (load, grown, slow))
    by_price = [float(billed.usd(1.0, ratio)) for ratio in price]
    return [
        tornado_bar("demand", load, "the forecast", by_load),
        tornado_bar("growth", grown, "the middle", by_growth),
        tornado_bar("prices", price, "today's", by_price),
        tornado_bar("predicted throughput", speed, "the prediction", by_speed),
    ]


def _prices(fleets: ComparedFleets) -> Iterable[PriceScenario]:
    """Named movements: all together, then the chosen kind against the others."""
    kind = fleets.curves[0].kind
    moves = [(name, ratio, ratio) for name, ratio in PRICE_MOVES.items()]
    if len({curve.kind for curve in fleets.curves}) > 1:
        moves += [
            (f"{kind} alone rises by 20 %", 1.2, 1.0),
            (f"all but {kind} fall by 20 %", 1.0, 0.8),
            (f"all but {kind} fall by 40 %", 1.0, 0.6),
        ]
    for name, own, other in moves:
        ratios = [own if curve.kind == kind else other for curve in fleets.curves]
        usd = [fleets.usd(place, price=ratio) for place, ratio in enumerate(ratios)]
        yield price_scenario(name, fleets.names, usd)


def sampling_notes(*, is_run: bool = False) -> tuple[Assumption, ...]:
    """What the samples rest on; a run has no demand that could be off."""
    off = "--samples 0 leaves it out"
    demand = Assumption(
        what="error of the demand forecast",
        value=f"±{DEMAND_SPREAD_FRAC:.0%} in four of five cases",
        why="no forecast error is known; it counts in the probability of meeting the SLOs",
        change=off,
    )
    prices = Assumption(
        what="movement of prices",
        value="−40 %, −20 %, unchanged or +20 %, equally likely",
        why="named scenarios, no trend: prices of accelerators have risen too",
        change=off,
    )
    return (prices,) if is_run else (demand, prices)

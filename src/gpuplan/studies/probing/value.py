"""Value of information: what is expected to be saved by measuring a fleet before it is bought.

In: fleets to choose from, each with the load that a replica carries by the error of the model; out:
the expected cost of the best choice, before and after a run. A plan that is sized for a probability
L prices a missing replica at 1 / (1 - L) of a replica: that price makes its number the cheapest on
average (newsvendor [Arrow1951]). So the loss of a choice is what is paid and what is missed.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.risk import FleetRisk, RiskSamples
from gpuplan.domain.columns import Ints, floats, ints
from gpuplan.domain.plan.sizing import CarriedLoad

N_OUTCOMES = 15  # even quantiles of what a run may show
N_SIZES = 160  # of fleets that are weighed
LEAST_RATIO, MOST_RATIO = 0.25, 2.0  # of the planned number: beyond it another fleet is bought
# Share of the squared error of TPOT that configurations of one model on one accelerator have in
# common [ledger]; what runs on other accelerators says nothing of.
SAME_ACCELERATOR_FRAC = 0.6


class FleetChoice(NamedTuple):
    """A row that could be bought, as far as its price and its speed go."""

    name: str
    accelerator: str
    carried: CarriedLoad
    n_replicas: int  # as planned
    n_spare: int
    usd_per_replica: float  # a month
    n_accelerators: int = 1  # of a replica
    is_open: bool = True  # may be chosen without a run: others have measured such a stack


class Belief(NamedTuple):
    """What is believed of a fleet's error, in deviations of the range of a site never seen."""

    mean: float = 0.0
    sd_ratio: float = 1.0


class Bought(NamedTuple):
    """The best choice under what is believed, and its expected cost a month."""

    fleet: FleetChoice
    n_replicas: int
    loss_usd: float


class Market(NamedTuple):
    """What is chosen from, for which load, at what probability of meeting all SLOs."""

    fleets: tuple[FleetChoice, ...]
    peak: float
    level_frac: float
    samples: RiskSamples


def sizes(fleet: FleetChoice) -> Ints:
    """Numbers of replicas that are weighed, from a quarter of the plan to twice as many."""
    grid = fleet.n_replicas * np.geomspace(LEAST_RATIO, MOST_RATIO, N_SIZES)
    return ints(np.unique(np.ceil(grid).astype(np.int64)))


def needed(fleet: FleetChoice, market: Market, belief: Belief) -> Ints:
    """[sample] the fewest replicas that meet all SLOs; where none does, more than any weighed."""
    moved = floats(belief.mean + belief.sd_ratio * market.samples.n_deviations)
    risk = FleetRisk(fleet.carried, market.samples._replace(n_deviations=moved))
    grid = sizes(fleet)
    found = np.full(len(moved), int(grid[-1]) + 1, dtype=np.int64)
    for n in grid[::-1].tolist():
        found[risk.is_enough(n, market.peak) > 0] = n
    return ints(found)


def bought(market: Market, beliefs: Mapping[str, Belief], *, measured: str = "") -> Bought:
    """The choice of least expected loss; what nobody has measured only after its own run."""
    found = [
        _best_size(fleet, market, beliefs.get(fleet.name, Belief()))
        for fleet in market.fleets
        if fleet.is_open or fleet.name == measured
    ]
    return min(found, key=lambda each: each.loss_usd)


def _best_size(fleet: FleetChoice, market: Market, belief: Belief) -> Bought:
    need, grid = needed(fleet, market, belief), sizes(fleet)
    # Spares for failures stand beside what carries the load at the expected speed.
    load = float(np.interp(belief.mean, fleet.carried.n_deviations, fleet.carried.load_per_s))
    least = ceil(market.peak / load - 1e-9) + fleet.n_spare if load > 0 else int(grid[-1])
    grid = grid[grid >= min(least, int(grid[-1]))]
    missing = np.maximum(0, need[None, :] - grid[:, None]).mean(axis=1)
    losses = fleet.usd_per_replica * (grid + missing / (1.0 - market.level_frac))
    place = int(np.argmin(losses))
    return Bought(fleet, int(grid[place]), float(losses[place]))


def beliefs_after(
    market: Market, of: FleetChoice, *, shown: float, sd_ratio: float
) -> dict[str, Belief]:
    """What a run that shows so many deviations says of every fleet; it leaves `sd_ratio`."""
    gain = sqrt(max(0.0, 1.0 - sd_ratio**2))
    found = {}
    for fleet in market.fleets:
        shared = 1.0 if fleet.name == of.name else _in_common(fleet, of)
        found[fleet.name] = Belief(shared * gain * shown, sqrt(1.0 - (shared * gain) ** 2))
    return found


def _in_common(fleet: FleetChoice, of: FleetChoice) -> float:
    return SAME_ACCELERATOR_FRAC if fleet.accelerator == of.accelerator else 0.0


@cache
def outcomes() -> tuple[float, ...]:
    """Deviations that a run may show, each as likely as the next."""
    normal = NormalDist()
    return tuple(normal.inv_cdf((i + 0.5) / N_OUTCOMES) for i in range(N_OUTCOMES))


class Informed(NamedTuple):
    """What a run of a fleet is worth a month, and what would be bought by what it shows."""

    value_usd: float
    choices: tuple[Bought, ...]  # one for each outcome


def informed(market: Market, of: FleetChoice, *, sd_ratio: float) -> Informed:
    """The expected saving if this fleet is measured first; never below nothing."""
    now = bought(market, {})
    choices = tuple(
        bought(market, beliefs_after(market, of, shown=z, sd_ratio=sd_ratio), measured=of.name)
        for z in outcomes()
    )
    after = float(np.mean([each.loss_usd for each in choices]))
    return Informed(max(0.0, now.loss_usd - after), choices)


def changed(now: tuple[str, int], choices: Sequence[Bought]) -> list[tuple[Bought, float]]:
    """Other choices than that of the plan with their chances, likeliest first."""
    found: dict[tuple[str, int], list[Bought]] = {}
    for each in choices:
        found.setdefault((each.fleet.name, each.n_replicas), []).append(each)
    others = [(of[0], len(of) / len(choices)) for key, of in found.items() if key != now]
    return sorted(others, key=lambda pair: -pair[1])


def spread(half: float, sd_ratio: float = 1.0) -> tuple[float, float]:
    """The 80 % range of a factor whose half-width in logs is so wide, and narrowed by a ratio."""
    return float(np.exp(-half * sd_ratio)), float(np.exp(half * sd_ratio))

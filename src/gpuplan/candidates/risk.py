"""Whether a fleet is enough if the model, the demand and the hardware are not as assumed.

In: the most load that one replica carries, by the error of the model; out: probabilities, and the
fewest replicas for one. Samples are even and the same for every fleet: two fleets differ by merit.
"""

from functools import cache
from math import ceil, log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.plan.sizing import CarriedLoad
from gpuplan.domain.provenance import Estimate

Z_80 = 1.2816  # deviations of a normal law that hold 80 % between them
DEMAND_SPREAD_FRAC = 0.2  # Assumption: demand lies within this of the forecast, four times of five
N_SAMPLES = 2048
DEVIATIONS = floats(np.linspace(-3.5, 3.5, 29))  # of the model's error, at which loads are told
MOST_DOWN = 64  # replicas that are down at once; more are beyond every chance
SAME = 1e-9
LEAST_FRAC = 0.01  # of a capacity that is left when no load is within the SLOs


class RiskSamples(NamedTuple):
    """What may differ from the assumptions, sample by sample."""

    n_deviations: Floats  # of the model's error: above 0 it is slower than predicted
    demand_ratio: Floats
    luck_frac: Floats  # even from 0 to 1: the least lucky meet failures

    def of_kind(self, k: int) -> "RiskSamples":
        """The samples of the k-th model: the same demand, an error and failures of its own."""
        if k == 0:
            return self
        order = np.random.default_rng(k).permutation(len(self.luck_frac))
        errors, luck = self.n_deviations[order], self.luck_frac[order[::-1]]
        return self._replace(n_deviations=floats(errors), luck_frac=floats(luck))

    def only(self, cause: str) -> "RiskSamples":
        """The same samples if this cause alone were uncertain."""
        n = len(self.luck_frac)
        fixed = RiskSamples(floats(np.zeros(n)), floats(np.ones(n)), floats(np.ones(n)))
        return fixed._replace(**{cause: getattr(self, cause)})


@cache
def risk_samples(seed: int, n: int = N_SAMPLES) -> RiskSamples:
    """Even samples of every cause, paired at random (a Latin hypercube) [McKay1979]."""
    rng = np.random.default_rng(seed)
    even = (np.arange(n) + 0.5) / n
    normal = np.array([NormalDist().inv_cdf(float(x)) for x in even])
    sd = np.log1p(DEMAND_SPREAD_FRAC) / Z_80
    return RiskSamples(
        n_deviations=floats(rng.permutation(normal)),
        demand_ratio=floats(np.exp(sd * rng.permutation(normal) - sd**2 / 2)),
        luck_frac=floats(rng.permutation(even)),
    )


def error_ratio(unit: Estimate, n_deviations: Floats) -> Floats:
    """The factor at so many deviations, where the range of 1 holds 80 % and 1 is the median."""
    up, down = log(unit.high / unit.value), log(unit.value / unit.low)
    return floats(np.exp(np.where(n_deviations > 0, up, down) * n_deviations / Z_80))


def carried_by_range(within_slo_per_s: Estimate, *, down_frac: float) -> CarriedLoad:
    """The load of one replica where the range of its capacity is all that is known."""
    fast = within_slo_per_s
    value = fast.value if fast.value > 0 else 1.0
    unit = Estimate(value=1.0, low=fast.low / value, high=fast.high / value, tier=fast.tier)
    # Slower than predicted is less load: the range is walked down.
    ratio = error_ratio(unit, floats(-DEVIATIONS)) if fast.low > 0 else np.ones(len(DEVIATIONS))
    return CarriedLoad(
        n_deviations=tuple(DEVIATIONS.tolist()),
        load_per_s=tuple((fast.value * ratio).tolist()),
        down_frac=down_frac,
    )


def rate_within(carried: CarriedLoad, load: float, *, n: int, peak: float) -> Estimate:
    """Load of one replica of so many that carry a load: they are enough, one fewer is not."""
    fewer = peak / (n - 1) * (1 - SAME) if n > 1 else load
    value = max(peak / n, min(load / n, fewer))
    z = (Z_80, 0.0, -Z_80)
    low, middle, high = np.interp(z, carried.n_deviations, carried.load_per_s)
    known = middle if middle > 0 else 1.0
    return Estimate(
        value=value,
        low=value * max(LEAST_FRAC, low / known),
        high=value * max(1.0, high / known),
        tier="simulated",
    )


class FleetRisk:
    """The odds of fleets of one candidate."""

    def __init__(self, carried: CarriedLoad, samples: RiskSamples) -> None:
        per_replica = np.interp(samples.n_deviations, carried.n_deviations, carried.load_per_s)
        self._per_replica = per_replica / samples.demand_ratio
        self._luck, self._down_frac = samples.luck_frac, carried.down_frac

    def is_enough(self, n_replicas: int, load: float) -> Ints:
        """[sample] 1 where so many replicas carry the load within every SLO."""
        return (self._carried(n_replicas) >= load * (1 - SAME)).astype(np.int64)

    def probability(self, n_replicas: int, load: float) -> float:
        """Share of the samples in which so many replicas carry the load within every SLO."""
        return float(self.is_enough(n_replicas, load).mean())

    def most_load(self, n_replicas: int, level_frac: float) -> float:
        """The highest load that so many replicas carry with this probability."""
        carried = np.sort(self._carried(n_replicas))
        return float(carried[len(carried) - ceil(level_frac * len(carried) - SAME)])

    def fewest(self, load: float, level_frac: float, *, most: int) -> int | None:
        """The fewest replicas that carry the load with this probability; None: no such number."""
        each = np.sort(self._per_replica)[len(self._luck) - ceil(level_frac * len(self._luck))]
        if load <= 0 or each <= 0 or load / each > most:
            return 0 if load <= 0 else None
        for n in range(max(1, ceil(load / each - SAME)), most + 1):
            if self.most_load(n, level_frac) >= load * (1 - SAME):
                return n
        return None

    def _carried(self, n_replicas: int) -> Floats:
        return floats((n_replicas - self._n_down(n_replicas)) * self._per_replica)

    def _n_down(self, n_replicas: int) -> Ints:
        """[sample] replicas in repair: each is down by itself for its share of the time."""
        p, luck = self._down_frac, 1.0 - self._luck
        chance = (1.0 - p) ** n_replicas
        at_most, n_down = chance, np.zeros(len(luck), dtype=np.int64)
        for k in range(1, min(n_replicas, MOST_DOWN) + 1):
            worse = luck > at_most
            if not worse.any():
                break
            n_down[worse] = k
            chance *= (n_replicas - k + 1) / k * p / (1.0 - p)
            at_most += chance
        return n_down

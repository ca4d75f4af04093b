"""Odds of several fleets together, against drawn ones; and the replicas that reach them."""

from types import SimpleNamespace

import numpy as np
import pytest

from gpuplan.candidates.risk import DEMAND_SPREAD_FRAC, carried_by_range, risk_samples
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.day_replay.joint_odds import SureFleet, counts_together, met_together

SAMPLES = risk_samples(0)


def fleet(n: int, load: float, *, low: float, model: str = "m", each: float = 10.0) -> SureFleet:
    rate = Estimate(value=each, low=low * each, high=each / low, tier="fitted")
    sized = SimpleNamespace(n_replicas=n, carried=carried_by_range(rate, down_frac=0.0))
    return SureFleet(model, sized, load)


def drawn(fleets: list[SureFleet], lows: list[float], *, is_one_model: bool) -> float:
    """A million draws of all fleets, with no code of the planner."""
    rng = np.random.default_rng(3)
    n = 1_000_000
    sd = np.log(1 + DEMAND_SPREAD_FRAC) / 1.2816
    demand = rng.lognormal(-(sd**2) / 2, sd, n)
    errors = rng.standard_normal((1 if is_one_model else len(fleets), n))
    met = np.ones(n, dtype=bool)
    for place, (each, low) in enumerate(zip(fleets, lows, strict=True)):
        z = errors[0 if is_one_model else place]
        met &= each.load * demand <= each.sized.n_replicas * 10.0 * low ** (z / 1.2816)
    return float(met.mean())


@pytest.mark.parametrize("models", [("a", "a"), ("a", "b")])
def test_the_odds_of_two_fleets_are_those_of_a_million_draws(models):
    lows = [0.9, 0.6]
    loads = [35.0, 30.0]
    fleets = [fleet(4, w, low=x, model=m) for w, x, m in zip(loads, lows, models, strict=True)]
    found = met_together(fleets, SAMPLES)
    assert found == pytest.approx(drawn(fleets, lows, is_one_model=len({*models}) == 1), abs=0.02)
    assert found <= min(met_together([each], SAMPLES) for each in fleets)


def test_each_is_as_sure_as_asked_for_and_both_together_are_not_until_they_grow():
    bare = [fleet(4, 42.0, low=0.95), fleet(9, 95.0, low=0.5)]
    alone = [each.n_at(SAMPLES, 0.8) for each in bare]
    fleets = [
        each._replace(sized=SimpleNamespace(n_replicas=n, carried=each.sized.carried))
        for each, n in zip(bare, alone, strict=True)
    ]
    assert all(met_together([each], SAMPLES) >= 0.8 for each in fleets)
    assert met_together(fleets, SAMPLES) < 0.8
    counts = counts_together(fleets, SAMPLES, 0.8)
    assert met_together(fleets, SAMPLES, counts) >= 0.8
    assert all(n >= least for n, least in zip(counts, alone, strict=True))
    assert sum(counts) <= sum(alone) + 3  # no more than what is missing


def test_what_no_number_reaches_is_told_by_none():
    assert (
        counts_together([fleet(1, 10.0, low=0.9), fleet(1, 900.0, low=0.5)], SAMPLES, 0.8) is None
    )

"""The odds of several services together, in: their chosen fleets; out: fleets that reach them.

Each service is sized for its own probability; that all meet their SLOs at once is rarer. Samples
are shared: predictions of one model err together, demand moves all of them.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.risk import FleetRisk, RiskSamples, risk_samples
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.selection import Selection
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.studies.day_replay.replay import replayed_fleet
from gpuplan.studies.planning.inputs import PlanInputs

MOST_LEVEL_FRAC, N_LEVELS = 0.99, 48  # that each fleet is tried at, from the one asked for on
MOST_RATIO = 4  # of its replicas: beyond, it is emptied rather than made surer


class SureFleet(NamedTuple):
    """A fleet of one service, with the load at its peak."""

    model: str
    sized: Sized
    load: float

    def n_at(self, samples: RiskSamples, level_frac: float) -> int:
        """The fewest replicas, spares included, at this probability; as they are where none are."""
        n, carried = self.sized.n_replicas, self.sized.carried
        assert carried is not None
        found = FleetRisk(carried, samples).fewest(self.load, level_frac, most=MOST_RATIO * n)
        return max(n, found or n)


def met_together(
    fleets: Sequence[SureFleet], samples: RiskSamples, counts: Sequence[int] = ()
) -> float:
    """Share of the samples in which every fleet meets its SLOs, also with other counts.

    Predictions of one model are off together, those of different models each on its own.
    """
    kinds = {kind: at for at, kind in enumerate(dict.fromkeys(each.model for each in fleets))}
    counts = counts or [each.sized.n_replicas for each in fleets]
    met = (
        FleetRisk(each.sized.carried, samples.of_kind(kinds[each.model])).is_enough(n, each.load)
        for each, n in zip(fleets, counts, strict=True)
        if each.sized.carried is not None
    )
    return float(np.mean(prod(met, start=np.ones(len(samples.luck_frac), dtype=np.int64))))


def is_sure(inputs: PlanInputs, sizings: Sequence[Sizing], chosen: Selection) -> bool:
    """Whether all services together reach the probability asked for; where none is, they do."""
    level = inputs.around.options.all_probability_frac
    fleets = [*_fleets(inputs, sizings, chosen)]
    if level is None or not fleets:
        return True
    return met_together(fleets, risk_samples(inputs.around.options.seed)) >= level


def sure_together(
    inputs: PlanInputs, sizings: Sequence[Sizing], chosen: Selection
) -> list[Sizing] | None:
    """The sizings with chosen fleets so much larger that all are met; None: so they are already.

    None, too, where no number of replicas reaches it: what is missing then is told with the plan.
    """
    level = inputs.around.options.all_probability_frac
    fleets = [*_fleets(inputs, sizings, chosen)]
    if level is None or len(fleets) < 2 or is_sure(inputs, sizings, chosen):
        return None
    counts = counts_together(fleets, risk_samples(inputs.around.options.seed), level)
    if counts is None:
        return None
    grown = {each.sized.candidate: n for each, n in zip(fleets, counts, strict=True)}
    return [_grown(inputs, sizing, chosen, grown) for sizing in sizings]


def counts_together(
    fleets: Sequence[SureFleet], samples: RiskSamples, level_frac: float
) -> list[int] | None:
    """Replicas of each fleet at the least common level at which all together reach this one."""
    for each_level in np.linspace(level_frac, MOST_LEVEL_FRAC, N_LEVELS):
        counts = [each.n_at(samples, float(each_level)) for each in fleets]
        if met_together(fleets, samples, counts) >= level_frac:
            return counts
    return None


def _fleets(
    inputs: PlanInputs, sizings: Sequence[Sizing], chosen: Selection
) -> Iterator[SureFleet]:
    """Every chosen fleet that is simulated and whose odds are known."""
    for sizing in sizings:
        fleet = replayed_fleet(inputs, sizing, chosen)
        work = inputs.scenario.workload(sizing.workload)
        if fleet is not None and fleet.sized.carried is not None and work is not None:
            model = work.model.name or "" if work.model else ""
            yield SureFleet(model, fleet.sized, sizing.demand.peak_of(0, 0))


def _grown(
    inputs: PlanInputs, sizing: Sizing, chosen: Selection, counts: dict[Candidate, int]
) -> Sizing:
    """The sizing with the chosen fleet in its new number."""
    fleet = replayed_fleet(inputs, sizing, chosen)
    more = counts.get(fleet.sized.candidate, 0) - fleet.sized.n_replicas if fleet else 0
    if fleet is None or more <= 0:
        return sizing
    need = fleet.sized.need.scaled(1.0 + more / fleet.sized.n_serving)
    remark = f"{more} more, so that all services together meet their SLOs as surely as is asked for"
    return fleet.sizing_with(fleet.sizer.resized(fleet.sized, need=need, remark=remark))

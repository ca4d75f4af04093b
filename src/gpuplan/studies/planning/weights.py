"""The weighted objective, in: weights of the scenario; out: what the selection counts."""

from dataclasses import replace

from gpuplan.candidates.risk import FleetRisk, risk_samples
from gpuplan.domain.plan.selection import FleetOption, Measure
from gpuplan.domain.plan.sizing import DemandProfile, Sized
from gpuplan.domain.scenario.scenario import Scenario

SEED = 0  # of the samples that odds are counted on: all options share them


def weights_of(scenario: Scenario) -> tuple[tuple[Measure, float], ...]:
    """What the weighted objective counts, and how much; empty for others."""
    given = scenario.policy.weights
    if given is None or scenario.objective != "weighted":
        return ()
    named: tuple[tuple[Measure, float], ...] = (
        ("worth", given.cost_ratio),
        ("time", given.time_ratio),
        ("energy", given.energy_ratio),
        ("carbon", given.carbon_ratio),
        ("risk", given.risk_ratio),
    )
    return tuple((name, weight) for name, weight in named if weight > 0)


def energy_counts(scenario: Scenario) -> bool:
    """Whether the choice depends on energy, so that an unknown draw may not be chosen."""
    weighed = dict(weights_of(scenario))
    return scenario.objective == "energy" or "energy" in weighed


def with_risk(
    option: FleetOption, scenario: Scenario, sized: Sized, demand: DemandProfile
) -> FleetOption:
    """The option with the probability that an SLO is violated, where a weight counts it."""
    peak = demand.peak_requests_per_s
    if "risk" not in dict(weights_of(scenario)) or sized.carried is None or not peak:
        return option
    odds = FleetRisk(sized.carried, risk_samples(SEED)).probability(sized.n_replicas, peak)
    return replace(option, risk_frac=1.0 - odds)

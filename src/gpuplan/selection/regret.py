"""Least regret: the choice whose worst excess over each scenario's own best is smallest."""

from dataclasses import replace

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    DeferrableWork,
    FleetOption,
    MixedFleet,
    NodeTerms,
    SelectionProblem,
)


def only(problem: SelectionProblem, scenario: int) -> SelectionProblem:
    """The problem as if this scenario were certain."""
    at = slice(scenario, scenario + 1)

    def terms(given: NodeTerms) -> NodeTerms:
        ratio = given.price_ratio
        return given if ratio is None else replace(given, price_ratio=floats(ratio[at]))

    def option(given: FleetOption) -> FleetOption:
        return replace(given, need=ints(given.need[at]))

    def work(given: DeferrableWork) -> DeferrableWork:
        return replace(given, n_work=floats(given.n_work[at]))

    def fleet(given: MixedFleet) -> MixedFleet:
        return replace(given, n_load=floats(given.n_load[at]))

    return replace(
        problem,
        horizon=replace(problem.horizon, probability_frac=floats([1.0]), n_shared_periods=None),
        terms=tuple(terms(given) for given in problem.terms),
        options=tuple(option(given) for given in problem.options),
        deferrable=tuple(work(given) for given in problem.deferrable),
        mixed=tuple(fleet(given) for given in problem.mixed),
        objective="cost",
    )

"""Owned nodes that are not enough, in: sizings of the whole load; out: them, and another fleet.

What is owned serves as far as it goes; the rest of the load is a service of its own, on whatever is
cheapest for it. Both parts are sized and simulated like any other service.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpuplan.candidates.reserve import reserve_for
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.plan.packing import nodes_for
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes
from gpuplan.domain.scenario.workload import Generic, LoadBand, Serving, Workload
from gpuplan.studies.market.offers import Market
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.workload import size_workload

# A smaller fleet carries less per replica than the whole, and less surely.
MARGINS = (1.0, 0.93, 0.86, 0.75, 0.6, 0.45)
MOST_TRIES = 3  # each is a plan of its own
LEAST_REST_FRAC = 0.01  # of the load: below, it is not worth a second fleet


class OwnedReach(NamedTuple):
    """How far the owned nodes go for a workload."""

    workload: str
    sized: Sized  # the fleet that goes farthest
    n_replicas: int  # that fit, spares not counted
    load_per_s: float  # that they carry
    peak_per_s: float  # of the whole load, today
    most_per_s: float  # of the whole load, in any period


class OwnedParts(NamedTuple):
    """The scenario with one workload as two: on owned nodes, and the rest."""

    inputs: PlanInputs
    sizings: list[Sizing]
    reach: OwnedReach


def owned_reach(inputs: PlanInputs, sizings: Sequence[Sizing]) -> OwnedReach | None:
    """How far owned nodes go for the one service there is; None: far enough, or not at all."""
    services = [w for w in inputs.scenario.workloads if not w.has_end]
    if not inputs.scenario.owned or len(services) != 1 or not _may_split(services[0]):
        return None
    sizing = next(each for each in sizings if each.workload == services[0].name)
    peak = sizing.demand.peak_of(0, 0)
    most = peak / float(sizing.demand.periods.load_ratio[0, 0])
    most *= float(sizing.demand.periods.load_ratio[0].max())
    found = [
        OwnedReach(sizing.workload, sized, n, n * sized.capacity_per_s.value, peak, most)
        for nodes in inputs.scenario.owned
        for sized, n in _fitting(inputs, sizing, nodes)
        if sized.capacity_per_s is not None
    ]
    best = max(found, key=lambda each: each.load_per_s, default=None)
    if best is None or any(each.sized.need.n_most(0) <= each.n_replicas for each in found):
        return None
    return best


def _may_split(workload: Workload) -> bool:
    """Whether a part of the load is a load: not of clients that wait, nor of a recorded trace."""
    work = workload.work
    if isinstance(work, Generic):
        return False
    arrivals = work.arrivals if isinstance(work, Serving) else None
    return arrivals is None or (arrivals.peak_requests_per_s is not None and not arrivals.trace)


def _fitting(inputs: PlanInputs, sizing: Sizing, nodes: OwnedNodes) -> Iterator[tuple[Sized, int]]:
    """Fleets on these nodes, each with the replicas that fit beside their spares."""
    kind = find_accelerator(nodes.accelerator, inputs.catalog).accelerator.id
    for sized in sizing.sized:
        if sized.candidate.accelerator == kind:
            n = _n_fitting(sized, nodes, inputs.scenario)
            if n > 0:
                yield sized, n


def _n_fitting(sized: Sized, nodes: OwnedNodes, scenario: Scenario) -> int:
    size = nodes.n_accelerators_per_node
    for n in range(nodes.n_nodes * size, 0, -1):
        reserve = reserve_for(
            sized.candidate, n, scenario.policy.resilience, n_accelerators_per_node=size
        )
        held = nodes_for(sized.candidate, n + reserve.n_spare, size)
        if held is not None and held <= nodes.n_nodes:
            return n
    return 0


def owned_parts(
    inputs: PlanInputs, sizings: Sequence[Sizing], reach: OwnedReach
) -> Iterator[OwnedParts]:
    """Both parts, sized; first as much on owned nodes as they carry, then less and less."""
    others = [each for each in sizings if each.workload != reach.workload]
    n_tries = 0
    for margin in MARGINS:
        load = reach.load_per_s * margin
        if reach.most_per_s - load < LEAST_REST_FRAC * reach.most_per_s:
            return
        split = inputs._replace(scenario=_in_two(inputs.scenario, reach.workload, load))
        mine, other = split.scenario.workloads[:2]
        alone = with_kinds(split.scenario, (str(reach.sized.candidate.accelerator),))
        own = _on_owned(size_workload(mine, alone, split.around), reach)
        if own.sized:
            rest = size_workload(other, split.scenario, split.around)
            if rest.sized:
                yield OwnedParts(split, [own, rest, *others], reach)
                n_tries += 1
        if n_tries == MOST_TRIES:
            return


def with_kinds(scenario: Scenario, kinds: tuple[str, ...]) -> Scenario:
    """The scenario with these accelerators alone."""
    policy = scenario.policy
    only = replace(policy.accelerators, allowed=kinds)
    return replace(scenario, policy=replace(policy, accelerators=only))


def markets_of_owned(inputs: PlanInputs) -> dict[str, Market]:
    """For workloads that are the part on owned nodes: nothing but those."""
    standing = inputs.market._replace(rates=())
    bands = {work.name: work.band for work in inputs.scenario.workloads}
    return {
        name: standing for name, band in bands.items() if band and band.low_requests_per_s == 0.0
    }


def _in_two(scenario: Scenario, name: str, load_per_s: float) -> Scenario:
    """The scenario with the workload cut at a load: the part below first, then the rest."""
    workload = scenario.workload(name)
    assert workload is not None
    bands = {
        "owned": LoadBand(of=name, low_requests_per_s=0.0, high_requests_per_s=load_per_s),
        "rest": LoadBand(of=name, low_requests_per_s=load_per_s, high_requests_per_s=None),
    }
    parts = (replace(workload, name=f"{name} ({what})", band=b) for what, b in bands.items())
    rest = (work for work in scenario.workloads if work.name != name)
    return replace(scenario, workloads=(*parts, *rest))


def _on_owned(sizing: Sizing, reach: OwnedReach) -> Sizing:
    """The fleets of the very kind that goes farthest, as far as they fit."""
    kind = reach.sized.candidate.accelerator
    sized = tuple(
        each
        for each in sizing.sized
        if each.candidate.accelerator == kind
        # In every period: load that grows into its band takes more than it takes today.
        and each.candidate.n_accelerators_for(each.need.n_most(0))
        <= reach.sized.candidate.n_accelerators_for(reach.n_replicas)
    )
    return replace(sizing, sized=sized)

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


class OwnedFleet(NamedTuple):
    """The fleet that goes farthest on owned nodes of one kind."""

    sized: Sized
    n_replicas: int  # that fit, spares not counted
    load_per_s: float  # that they carry

    @property
    def kind(self) -> str:
        """The accelerator of the nodes."""
        return str(self.sized.candidate.accelerator)


class OwnedReach(NamedTuple):
    """How far the owned nodes go for a workload."""

    workload: str
    fleets: tuple[OwnedFleet, ...]  # one for each kind of node, the farthest first
    peak_per_s: float  # of the whole load, today
    most_per_s: float  # of the whole load, in any period

    @property
    def load_per_s(self) -> float:
        """What all of them carry together."""
        return sum(fleet.load_per_s for fleet in self.fleets)


class OwnedParts(NamedTuple):
    """The scenario with one workload as several: on owned nodes of each kind, and the rest."""

    inputs: PlanInputs
    sizings: list[Sizing]


def owned_reach(inputs: PlanInputs, sizings: Sequence[Sizing]) -> OwnedReach | None:
    """How far owned nodes go for the one service there is; None: one kind is enough, or none."""
    services = [w for w in inputs.scenario.workloads if not w.has_end]
    if not inputs.scenario.owned or len(services) != 1 or not _may_split(services[0]):
        return None
    sizing = next(each for each in sizings if each.workload == services[0].name)
    peak = sizing.demand.peak_of(0, 0)
    most = peak / float(sizing.demand.periods.load_ratio[0, 0])
    most *= float(sizing.demand.periods.load_ratio[0].max())
    found = [
        OwnedFleet(sized, n, n * sized.capacity_per_s.value)
        for nodes in inputs.scenario.owned
        for sized, n in _fitting(inputs, sizing, nodes)
        if sized.capacity_per_s is not None
    ]
    if not found or any(each.sized.need.n_most(0) <= each.n_replicas for each in found):
        return None
    found.sort(key=lambda each: -each.load_per_s)
    best = {each.kind: each for each in reversed(found)}
    fleets = sorted(best.values(), key=lambda each: -each.load_per_s)
    return OwnedReach(sizing.workload, tuple(fleets), peak, most)


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
        provisioned = nodes_for(sized.candidate, n + reserve.n_spare, size)
        if provisioned is not None and provisioned <= nodes.n_nodes:
            return n
    return 0


def owned_parts(
    inputs: PlanInputs, sizings: Sequence[Sizing], reach: OwnedReach
) -> Iterator[OwnedParts]:
    """All parts, sized; first as much on owned nodes as they carry, then less and less.

    Last, the kind that goes farthest alone.
    """
    yield from _parts_of(inputs, sizings, reach)
    if len(reach.fleets) > 1:
        yield from _parts_of(inputs, sizings, reach._replace(fleets=reach.fleets[:1]))


def _parts_of(
    inputs: PlanInputs, sizings: Sequence[Sizing], reach: OwnedReach
) -> Iterator[OwnedParts]:
    others = [each for each in sizings if each.workload != reach.workload]
    n_tries = 0
    for margin in MARGINS:
        bands = _bands(reach, margin)
        if len(bands) < 2:
            return
        split = inputs._replace(scenario=_split(inputs.scenario, reach.workload, bands))
        mine = [*_sized_parts(split, reach, len(bands))]
        if len(mine) == len(bands):
            yield OwnedParts(split, [*mine, *others])
            n_tries += 1
        if n_tries == MOST_TRIES:
            return


def _bands(reach: OwnedReach, margin: float) -> list[LoadBand]:
    """What each kind of owned node carries, one above the other, and the rest above them all."""
    found, low, least = [], 0.0, LEAST_REST_FRAC * reach.most_per_s
    for fleet in reach.fleets:
        high = low + fleet.load_per_s * margin
        is_last = reach.most_per_s - high < least
        found.append(_band(reach, low, None if is_last else high, is_owned=True))
        if is_last:
            return found
        low = high
    return [*found, _band(reach, low, None, is_owned=False)]


def _band(reach: OwnedReach, low: float, high: float | None, *, is_owned: bool) -> LoadBand:
    return LoadBand(
        of=reach.workload, low_requests_per_s=low, high_requests_per_s=high, is_owned=is_owned
    )


def _sized_parts(split: PlanInputs, reach: OwnedReach, n_parts: int) -> Iterator[Sizing]:
    """The parts that some fleet carries: owned ones on nodes of their own kind alone."""
    parts = split.scenario.workloads[:n_parts]
    for place, part in enumerate(parts):
        if part.band is not None and part.band.is_owned:
            fleet = reach.fleets[place]
            alone = with_kinds(split.scenario, (fleet.kind,))
            sizing = _on_owned(size_workload(part, alone, split.around), fleet)
        else:
            sizing = size_workload(part, split.scenario, split.around)
        if not sizing.sized:
            return
        yield sizing


def with_kinds(scenario: Scenario, kinds: tuple[str, ...]) -> Scenario:
    """The scenario with these accelerators alone."""
    policy = scenario.policy
    only = replace(policy.accelerators, allowed=kinds)
    return replace(scenario, policy=replace(policy, accelerators=only))


def markets_of_owned(inputs: PlanInputs) -> dict[str, Market]:
    """For workloads that are a part on owned nodes: nothing but those."""
    standing = inputs.market._replace(rates=())
    bands = {work.name: work.band for work in inputs.scenario.workloads}
    return {name: standing for name, band in bands.items() if band and band.is_owned}


def _split(scenario: Scenario, name: str, bands: Sequence[LoadBand]) -> Scenario:
    """The scenario with the workload cut at loads: the lowest part first, the rest last."""
    workload = scenario.workload(name)
    assert workload is not None
    n_owned = sum(band.is_owned for band in bands)
    parts = []
    for place, band in enumerate(bands):
        which = f" {place + 1}" if n_owned > 1 else ""
        what = f"owned{which}" if band.is_owned else "rest"
        parts.append(replace(workload, name=f"{name} ({what})", extent=band))
    rest = (work for work in scenario.workloads if work.name != name)
    return replace(scenario, workloads=(*parts, *rest))


def _on_owned(sizing: Sizing, fleet: OwnedFleet) -> Sizing:
    """The fleets of the very kind that goes farthest, as far as they fit."""
    most = fleet.sized.candidate.n_accelerators_for(fleet.n_replicas)
    sized = tuple(
        each
        for each in sizing.sized
        if str(each.candidate.accelerator) == fleet.kind
        # In every period: load that grows into its band takes more than it takes today.
        and each.candidate.n_accelerators_for(each.need.n_most(0)) <= most
    )
    return replace(sizing, sized=sized)

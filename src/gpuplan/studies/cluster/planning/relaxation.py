"""What stands in the way of a plan, and the smallest change that would make one."""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from gpuplan.domain.cluster.plan import ClusterPlan, MissedTarget
from gpuplan.errors import InfeasibleError, Problem
from gpuplan.studies.cluster.planning.judge import Fleet, Judge
from gpuplan.studies.cluster.planning.search import Bounds, cheapest_of, node_bounds, within
from gpuplan.units import HOUR, MINUTE


class Relaxation(NamedTuple):
    """A change, and how large it is relative to what was asked."""

    size: float
    text: str


def missed_text(missed: MissedTarget) -> str:
    """A missed target in words."""
    if missed.kind == "wait":
        value, target = missed.wait_p90_s / MINUTE, missed.target_p90_s / MINUTE
        return f"wait p90 of {missed.who} is {value:,.0f} min, target {target:,.0f} min"
    if missed.kind == "deadline":
        return f"{missed.met_frac:.1%} of the deadlines are met, {missed.asked_frac:.1%} asked"
    if missed.kind == "service":
        return f"services are {missed.short_accelerator_s / HOUR:,.0f} GPU-hours short"
    return f"{missed.n_jobs:,} jobs fit on no node"


class Limits(NamedTuple):
    """Nodes and money that a plan may take."""

    bounds: Bounds
    budget_usd: float


def relaxations(
    judge: Judge, limits: Limits, ways: Sequence[Fleet], holds: Callable[[Fleet], bool]
) -> tuple[str, ...]:
    """Changes each of which is enough by itself, the smallest first."""

    def cheapest(bounds: Bounds) -> Fleet | None:
        return cheapest_of(judge, bounds, ways, holds)

    found = [*_by_money(judge, limits, cheapest), *_by_nodes(judge, limits, cheapest)]
    found += _by_targets(judge, within(judge, limits.bounds, ways[0], limits.budget_usd))
    return tuple(one.text for one in sorted(found))


def refuse_cluster(found: ClusterPlan) -> None:
    """Raise InfeasibleError without a plan, with the changes that would make one."""
    if found.chosen is None:
        fixes = found.relaxations or ("add kinds of nodes, or relax the targets",)
        what = "no fleet within the limits meets every target"
        problems = [Problem("plan", what, fix) for fix in fixes]
        raise InfeasibleError(found.described.name, problems)


def _by_money(
    judge: Judge, limits: Limits, cheapest: Callable[[Bounds], Fleet | None]
) -> Iterator[Relaxation]:
    """The budget of the cheapest fleet within the bounds."""
    if limits.budget_usd == inf:
        return
    fleet = cheapest(limits.bounds)
    if fleet is not None:
        usd = judge.usd_per_month(fleet.counts)
        text = f"raise the budget from ${limits.budget_usd:,.0f} to ${usd:,.0f} a month"
        yield Relaxation(usd / limits.budget_usd - 1, text)


def _by_nodes(
    judge: Judge, limits: Limits, cheapest: Callable[[Bounds], Fleet | None]
) -> Iterator[Relaxation]:
    """More nodes of a kind than the file allows, at whatever they cost."""
    low, high = limits.bounds
    free = node_bounds(judge, is_limited=False)
    for kind, node in enumerate(judge.nodes):
        if node.group.bounds.n_max is None:
            continue
        fleet = cheapest(Bounds(low, (*high[:kind], free.high[kind], *high[kind + 1 :])))
        if fleet is not None and fleet.counts[kind] > high[kind]:
            n, usd = fleet.counts[kind], judge.usd_per_month(fleet.counts)
            text = f"raise max_nodes of {node.group.accelerator} from {high[kind]} to {n}"
            yield Relaxation(n / max(1, high[kind]) - 1, f"{text} (${usd:,.0f} a month)")


def _by_targets(judge: Judge, fleets: Iterator[Fleet]) -> Sequence[Relaxation]:
    """The targets that the best fleet within the limits would meet."""
    able = []
    for fleet in fleets:
        missed = judge.missed(fleet)
        if missed and all(one.kind in ("wait", "deadline") for one in missed):
            able.append(Relaxation(max(map(_size, missed)), "; ".join(map(_softened, missed))))
    return sorted(able)[:1]


def _size(missed: MissedTarget) -> float:
    if missed.kind == "deadline":
        return missed.asked_frac - missed.met_frac
    return missed.wait_p90_s / max(missed.target_p90_s, MINUTE) - 1


def _softened(missed: MissedTarget) -> str:
    if missed.kind == "deadline":
        return f"accept {missed.met_frac:.1%} of the deadlines instead of {missed.asked_frac:.1%}"
    value, target = missed.wait_p90_s / MINUTE, missed.target_p90_s / MINUTE
    return f"relax wait_p90_min of {missed.who} from {target:,.0f} to {value:,.1f}"

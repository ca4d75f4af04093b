"""The six needs of a described system, in: judged workloads and surroundings; out: a vector."""

from collections.abc import Iterable, Sequence

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Generic
from gpuplan.domain.system.check import Need, SystemSurroundings
from gpuplan.domain.system.parts import DataDemand, Stage

LINK, DISKS = "storage network", "storage"


def needs_of(
    scenario: Scenario,
    stages: Iterable[Stage],
    demands: Iterable[DataDemand | None],
    around: SystemSurroundings,
) -> tuple[Need, ...]:
    """Compute, memory, speed, storage, network and power; the tightest of each kind."""
    found = tuple(stages)
    return (
        _compute(scenario),
        _host(around, "memory", part="memory"),
        _host(around, "speed", part="CPU"),
        _storage(found, tuple(one for one in demands if one is not None)),
        _network(found),
        _power(around),
    )


def _compute(scenario: Scenario) -> Need:
    wanted = [
        work.work.n_accelerators if isinstance(work.work, Generic) else None
        for work in scenario.workloads
    ]
    return Need(
        name="compute",
        what="accelerators",
        unit="accelerators",
        n_demand=None if None in wanted else float(sum(n or 0.0 for n in wanted)),
        n_supply=float(sum(one.n_nodes * one.n_accelerators_per_node for one in scenario.owned)),
    )


def _host(around: SystemSurroundings, name: str, *, part: str) -> Need:
    lines = [line for _, parts in around.hosts for line in parts if line.part == part]
    tightest = max(lines, key=lambda x: x.n_needed / x.n_given if x.n_given else 0.0, default=None)
    return Need(
        name=name,
        what=f"{part} of a server",
        unit=tightest.unit if tightest else "",
        n_demand=tightest.n_needed if tightest else None,
        n_supply=tightest.n_given if tightest else None,
    )


def _storage(stages: Sequence[Stage], demands: Sequence[DataDemand]) -> Need:
    """Bytes a second that data is read at, against what its disks or their link let through."""
    slow = [one for one in stages if one.name in (LINK, DISKS)]
    wanted = sum(one.bytes_per_s for one in demands) or None
    worst = max((one.load_ratio for one in slow), default=None)
    given = wanted / worst if wanted and worst else None
    return Need(name="storage", what="reads", unit="bytes/s", n_demand=wanted, n_supply=given)


def _network(stages: Sequence[Stage]) -> Need:
    links = [one for one in stages if one.unit == "bytes/s" and "network" in one.name]
    worst = max(links, key=lambda one: one.load_ratio, default=None)
    return Need(
        name="network",
        what=worst.name if worst else "between servers",
        unit="bytes/s",
        n_demand=worst.n_wanted if worst else None,
        n_supply=worst.n_given if worst else None,
    )


def _power(around: SystemSurroundings) -> Need:
    plans = [one for one in around.facilities if one.fit.usable_w]
    worst = max(plans, key=lambda one: one.fit.used_w / (one.fit.usable_w or 1.0), default=None)
    return Need(
        name="power",
        what="a rack at full draw",
        unit="W",
        n_demand=(worst.fit.used_w or worst.node.max_w) if worst else None,
        n_supply=worst.fit.usable_w if worst else None,
    )

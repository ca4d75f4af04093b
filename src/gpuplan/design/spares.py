"""Failures: spare nodes while others are repaired, checkpoint write rates, maintenance."""

from collections.abc import Callable
from itertools import pairwise

from gpuplan.domain.scenario.build import USUAL, SpareRules
from gpuplan.domain.system.findings import Finding, note, warning
from gpuplan.domain.system.parts import CheckpointRate, SpareNeed
from gpuplan.errors import InputError, Problem
from gpuplan.units import DAY, GB, HOUR

# 419 unexpected stops in 54 days of 16,384 accelerators, hosts and links included [Llama3-2024].
ACCELERATOR_MTBF_S = 54 * DAY * 16_384 / 419
MOST_SPARES = 1000
WRITE_RATES = tuple(rate * GB for rate in (1, 2, 5, 10, 20, 50, 100, 200, 500))

LossOf = Callable[[float], CheckpointRate]


def spare_need(n_nodes: int, *, node_mtbf_s: float, rules: SpareRules = USUAL.spares) -> SpareNeed:
    """The fewest spares with which n_nodes work for the required share of the time.

    Nodes in repair are Poisson with mean (rate of failures) times (time of repair), whatever
    the law of repair: a queue with endless servers [Palm1943].
    """
    from scipy.special import pdtr  # noqa: PLC0415

    repair_s, kept_frac = rules.repair_s, rules.kept_frac
    _check(n_nodes, node_mtbf_s, repair_s, kept_frac)
    for n_spares in range(MOST_SPARES + 1):
        mean = (n_nodes + n_spares) * repair_s / node_mtbf_s
        reached = float(pdtr(n_spares, mean))
        if reached >= kept_frac:
            return SpareNeed(
                n_nodes=n_nodes,
                n_spares=n_spares,
                node_mtbf_s=node_mtbf_s,
                repair_s=repair_s,
                kept_frac=reached,
                availability_frac=node_mtbf_s / (node_mtbf_s + repair_s),
            )
    what = f"{n_nodes} nodes that fail every {node_mtbf_s / HOUR:.0f} h"
    fix = "repair faster, or lower spares.kept_frac"
    raise InputError("spares", [Problem("repair", what, fix)])


def _check(n_nodes: int, node_mtbf_s: float, repair_s: float, kept_frac: float) -> None:
    rules = (
        ("nodes", n_nodes, n_nodes >= 1, "use at least 1"),
        ("mtbf", node_mtbf_s, node_mtbf_s > 0, "must be above 0"),
        ("repair", repair_s, repair_s >= 0, "must be 0 or more"),
        ("kept_frac", kept_frac, 0 < kept_frac < 1, "use a share between 0 and 1"),
    )
    problems = [Problem(name, f"got {value}", fix) for name, value, good, fix in rules if not good]
    if problems:
        raise InputError("spares", problems)


def sufficient_rate(
    loss_of: LossOf, *, worth_frac: float = USUAL.spares.worth_frac
) -> tuple[CheckpointRate, tuple[CheckpointRate, ...]]:
    """The lowest write rate after which the next step saves too little, and the whole table."""
    table = tuple(loss_of(rate) for rate in WRITE_RATES)
    for here, after in pairwise(table):
        if here.lost_frac - after.lost_frac < worth_frac:
            return here, table
    return table[-1], table


def maintenance_findings(n_nodes: int, survive: str) -> tuple[Finding, ...]:
    """An objection where a rolling update of drivers or firmware leaves no node to stand in."""
    if survive in ("node", "rack", "zone"):
        return ()
    what = "updates take one node at a time out of service, and no node stands in"
    fix = "plan maintenance windows, or keep room for one node: policy.survive: node"
    return ((note if n_nodes > 1 else warning)("maintenance", "operation", what, fix),)

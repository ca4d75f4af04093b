"""Failures, in: rates and times of repair; out: spares, promises kept, checkpoint rates."""

from collections.abc import Callable
from itertools import pairwise
from math import exp

from gpuplan.domain.scenario.build import SpareRules
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.domain.system.parts import CheckpointRate, SpareNeed
from gpuplan.errors import InputError, Problem
from gpuplan.units import DAY, GB, HOUR

# 419 unexpected stops in 54 days of 16,384 accelerators, hosts and links included [Llama3-2024].
ACCELERATOR_MTBF_S = 54 * DAY * 16_384 / 419
MOST_SPARES = 1000
WRITE_RATES = tuple(rate * GB for rate in (1, 2, 5, 10, 20, 50, 100, 200, 500))

LossOf = Callable[[float], CheckpointRate]


def spare_need(n_nodes: int, *, node_mtbf_s: float, rules: SpareRules | None = None) -> SpareNeed:
    """The fewest spares with which n_nodes work for the promised share of the time.

    Machines in repair are Poisson with mean (rate of failures) times (time of repair), whatever
    the law of repair: a queue with endless servers [Palm1943].
    """
    repair_s, kept_frac = (rules or SpareRules()).repair_s, (rules or SpareRules()).kept_frac
    _check(n_nodes, node_mtbf_s, repair_s, kept_frac)
    for n_spares in range(MOST_SPARES + 1):
        mean = (n_nodes + n_spares) * repair_s / node_mtbf_s
        kept = poisson_at_most(n_spares, mean)
        if kept >= kept_frac:
            return SpareNeed(
                n_nodes=n_nodes,
                n_spares=n_spares,
                node_mtbf_s=node_mtbf_s,
                repair_s=repair_s,
                kept_frac=kept,
                availability_frac=node_mtbf_s / (node_mtbf_s + repair_s),
            )
    what = f"{n_nodes} nodes that fail every {node_mtbf_s / HOUR:.0f} h"
    raise InputError("spares", [Problem("repair", what, "repair faster, or promise less")])


def poisson_at_most(n: int, mean: float) -> float:
    """P(X ≤ n)."""
    term = total = exp(-mean)
    for k in range(1, n + 1):
        term *= mean / k
        total += term
    return total


def _check(n_nodes: int, node_mtbf_s: float, repair_s: float, kept_frac: float) -> None:
    rules = (
        ("nodes", n_nodes, n_nodes >= 1, "use at least 1"),
        ("mtbf", node_mtbf_s, node_mtbf_s > 0, "must be above 0"),
        ("repair", repair_s, repair_s >= 0, "must be 0 or more"),
        ("promise", kept_frac, 0 < kept_frac < 1, "use a share between 0 and 1"),
    )
    problems = [Problem(name, f"got {value}", fix) for name, value, good, fix in rules if not good]
    if problems:
        raise InputError("spares", problems)


def sufficient_rate(
    loss_of: LossOf, *, worth_frac: float = SpareRules().worth_frac
) -> tuple[CheckpointRate, tuple[CheckpointRate, ...]]:
    """The lowest write rate after which the next step saves too little, and the whole table."""
    table = tuple(loss_of(rate) for rate in WRITE_RATES)
    for here, after in pairwise(table):
        if here.lost_frac - after.lost_frac < worth_frac:
            return here, table
    return table[-1], table


def maintenance_findings(n_nodes: int, survive: str) -> tuple[Finding, ...]:
    """A roll of drivers or firmware takes a node at a time: someone must stand in."""
    if survive in ("node", "rack", "zone"):
        return ()
    what = "updates take one machine at a time out of service, and no machine stands in"
    fix = "plan windows, or keep room for one machine: policy.survive: node"
    severity: Severity = "note" if n_nodes > 1 else "warning"
    return (Finding(severity=severity, rule="maintenance", where="operation", what=what, fix=fix),)

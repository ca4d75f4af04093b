"""Replicas beyond the load: what may fail, and what an upgrade takes away.

A failure takes away the smallest unit that cannot work without its broken part: one accelerator
stops its whole tensor-parallel replica, a node stops every replica on it.
"""

from math import ceil

from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import Reserve
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.terms import FailureDomain, Resilience

NODES_PER_RACK = 4  # Assumption: four 8-accelerator nodes of 10 kW fill a 40 kW rack
N_ZONES = 2  # Assumption: of which either must carry all
# What is taken of a part that may fail: what, how much, and why.
TAKEN = {
    "rack": (
        "nodes in a rack that fails",
        str(NODES_PER_RACK),
        "four nodes of eight accelerators, 10 kW each, fill a rack of 40 kW",
    ),
    "zone": (
        "zones that the fleet is spread over",
        str(N_ZONES),
        "the fewest that survive the loss of one: either must carry all",
    ),
}


def reserve_for(
    candidate: Candidate, n_serving: int, resilience: Resilience, *, n_accelerators_per_node: int
) -> Reserve:
    """Spare replicas so that the SLOs hold after the failures the user wants to survive."""
    domain = resilience.survive
    n_failures = 0 if domain == "none" else resilience.n_failures
    lost = _replicas_lost(candidate, n_serving, domain, n_accelerators_per_node)
    n_spare = lost * n_failures
    return Reserve(
        n_spare=n_spare,
        domain=domain,
        n_failures=n_failures,
        why=_why(n_failures, domain, lost, n_spare=n_spare),
        upgrade=_upgrade(n_serving, n_spare),
    )


def reserve_notes(resilience: Resilience) -> tuple[Assumption, ...]:
    """What the size of the part that may fail was taken to be, where nobody says."""
    if resilience.survive not in TAKEN:
        return ()
    return (assume(*TAKEN[resilience.survive], "policy.survive"),)


def _replicas_lost(
    candidate: Candidate, n_serving: int, domain: FailureDomain, n_accelerators_per_node: int
) -> int:
    """Replicas that stop when one such failure domain does."""
    share = candidate.share.n_per_accelerator if candidate.share else 1
    known = {"none": 0, "gpu": share, "replica": 1, "zone": ceil(n_serving / (N_ZONES - 1))}
    if domain in known:
        return known[domain]
    per_node = 1
    if not candidate.is_node:
        per_node = max(1, n_accelerators_per_node * share // candidate.n_accelerators)
    # No more than the load itself need run in one node or rack: the rest goes elsewhere.
    return min(n_serving, per_node if domain == "node" else per_node * NODES_PER_RACK)


def _why(n_failures: int, domain: str, lost: int, *, n_spare: int) -> str:
    if domain == "none":
        return "no spare replica: the SLOs are violated with the first failure"
    times = "one" if n_failures == 1 else str(n_failures)
    what = {"gpu": "accelerator", "replica": "replica"}.get(domain, domain)
    stops = "1 replica" if lost == 1 else f"{lost} replicas"
    return f"+{n_spare}: {times} {what} may fail at the peak, which stops {stops} each time"


def _upgrade(n_serving: int, n_spare: int) -> str:
    if n_spare:
        return "a rolling upgrade takes one replica at a time, out of the reserve"
    left = (n_serving - 1) / n_serving if n_serving else 0.0
    return (
        "a rolling upgrade needs one replica more while it lasts, or a quiet hour: "
        f"without it {left:.0%} of the fleet is left"
    )

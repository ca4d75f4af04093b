"""Equal engines behind any router: requests -> one run.

Routers that know sessions or prefixes belong to autoscaled fleets; a pool that
never changes is a fleet of equal engines, bit for bit.
"""

from dataclasses import replace

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.simulation.serving.fleet.run import resting, simulate_fleet
from gpuplan.simulation.serving.run import simulate_serving

BIN_S = 60.0
KNOWING = ("prefix_affinity", "session")


def is_knowing(fleet: Fleet) -> bool:
    """The router looks at what a request holds, or whose it is."""
    return fleet.router in KNOWING and fleet.batching is None


def unknowing(rule: str, requests: Requests, change: str) -> list[Assumption]:
    """A router that looks at what no request has."""
    known = {"session": requests.session, "prefix_affinity": requests.prefix_group}
    if rule not in known or (known[rule] >= 0).any():
        return []
    what = "session" if rule == "session" else "text that it shares with others"
    why = f"no request of this load has a {what}"
    value = "as least_outstanding"
    return [Assumption(what=f"router {rule}", value=value, why=why, change=change)]


def routed_outcome(
    requests: Requests, fleet: Fleet, *, bin_s: float = BIN_S, blocks: PrefixBlocks | None = None
) -> Outcome:
    """Every request's times behind the fleet's router."""
    if fleet.decode is None and not is_knowing(fleet):
        return simulate_serving(requests, fleet, bin_s=bin_s, blocks=blocks)
    found = simulate_fleet(requests, resting(fleet), bin_s=bin_s, blocks=blocks)
    return replace(found.outcome, paid_engine_s=None)

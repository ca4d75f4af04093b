"""What cannot run, each with the first limit that it breaks and the least that would help."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil

from gpuplan.candidates.propose import n_in_server
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import InferenceMemory
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Constraint, Pruned, Rejection
from gpuplan.domain.plan.sizing import PriceOf
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.errors import Problem
from gpuplan.units import GB

Check = Callable[[Candidate], Rejection | None]


def prune(found: Iterable[Candidate], checks: Sequence[Check]) -> Pruned:
    """Each candidate is kept, or rejected by the first check that objects."""
    accepted, rejected = [], []
    for candidate in found:
        objection = next((r for check in checks if (r := check(candidate)) is not None), None)
        if objection is None:
            accepted.append(candidate)
        else:
            rejected.append(objection)
    return Pruned(accepted=tuple(accepted), rejected=tuple(rejected))


def rejection(
    candidate: Candidate, constraint: Constraint, reason: str, relaxation: str
) -> Rejection:
    """A rejection, in one line."""
    return Rejection(
        candidate=candidate, constraint=constraint, reason=reason, relaxation=relaxation
    )


def policy_check(allowed: frozenset[str], forbidden: frozenset[str]) -> Check:
    """Only what the user allows; an empty set of allowed ones allows all."""

    def check(candidate: Candidate) -> Rejection | None:
        card = candidate.accelerator
        if card in forbidden:
            fix = f"take {card} out of policy.accelerators.forbidden"
            return rejection(candidate, "policy", f"{card} is forbidden", fix)
        if allowed and card not in allowed:
            fix = f"add {card} to policy.accelerators.allowed"
            return rejection(candidate, "policy", f"{card} is not among the allowed", fix)
        return None

    return check


def problem_check(
    constraint: Constraint, problems_of: Callable[[Candidate], Sequence[Problem]]
) -> Check:
    """The first problem that was found, as a rejection."""

    def check(candidate: Candidate) -> Rejection | None:
        problems = problems_of(candidate)
        if not problems:
            return None
        return rejection(candidate, constraint, problems[0].what, problems[0].fix)

    return check


def domain_check(cards: Mapping[str, Accelerator], *, is_crossing_allowed: bool) -> Check:
    """Tensor parallelism stays inside a server, or inside a larger NVLink domain.

    Inside a server without such links they go over its bus, at the pace that step times tell.
    """

    def check(candidate: Candidate) -> Rejection | None:
        card, layout = cards[candidate.accelerator], candidate.layout
        n_joined, n_most = layout.tp * layout.dp, n_in_server(card)
        if layout.network_bytes_per_s is not None:
            n_joined = layout.tp  # experts that are dealt over servers are judged by their network
        if n_joined <= n_most or is_crossing_allowed:
            return None
        link = f"{card.scale_up.name} domain" if card.scale_up else "server"
        reason = f"tensor parallelism over {n_joined} leaves the {link} of {n_most}"
        fix = "set policy.tensor_parallel_across_islands: true, at the price of slow collectives"
        return rejection(candidate, "island", reason, fix)

    return check


def placement_check(price_of: PriceOf) -> Check:
    """Servers are to be had that a replica fits into, or that are joined fast enough to span."""

    def check(candidate: Candidate) -> Rejection | None:
        layout, card = candidate.layout, candidate.accelerator
        single = replace(candidate, layout=replace(layout, tp=1, pp=1, dp=1, ep=1, cp=1))
        is_placed = layout.n_accelerators == 1 or price_of(candidate, 1) is not None
        if is_placed or price_of(single, 1) is None:
            return None
        is_wide = layout.network_bytes_per_s is not None and layout.pp == 1
        dp, ep = (1, 1) if is_wide else (layout.dp, layout.ep)
        stage = replace(layout, pp=1, dp=dp, ep=ep, network_bytes_per_s=None)
        if price_of(replace(candidate, layout=stage), 1) is None:
            reason = f"no offer has {stage.n_accelerators} {card} in one server"
            fix = f"offer servers with {stage.n_accelerators} or more of them in prices.offers"
            return rejection(candidate, "island", reason, fix)
        n = layout.n_accelerators
        reason = f"a replica of {n} {card} spans servers, and no offer states a network for it"
        fix = "state prices.offers[].network_gbit_per_s, or site.network of your own"
        return rejection(candidate, "island", reason, fix)

    return check


def memory_check(
    memory_of: Callable[[Candidate], InferenceMemory],
    smallest_fit: Callable[[Candidate], str],
) -> Check:
    """The weights and at least one sequence have room."""

    def check(candidate: Candidate) -> Rejection | None:
        memory = memory_of(candidate)
        short = memory.sequence_bytes - memory.cache_bytes
        if short <= 0:
            return None
        reason = (
            f"weights {memory.weights_bytes / GB:.1f} GB and one sequence "
            f"{memory.sequence_bytes / GB:.1f} GB need {short / GB:.1f} GB more than the "
            f"{memory.budget_bytes / GB:.1f} GB that the engine may use"
        )
        found = rejection(candidate, "memory", reason, smallest_fit(candidate))
        return replace(found, gap_ratio=1.0 + short / memory.budget_bytes)

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTimes:
    """The least that one request alone takes on an idle replica."""

    ttft_s: float
    tpot_s: float
    e2e_s: float

    def of(self, metric: str) -> float:
        """The least of this metric; a gap between tokens is one token."""
        least = {"ttft": self.ttft_s, "tpot": self.tpot_s, "itl": self.tpot_s, "e2e": self.e2e_s}
        return least[metric]


def idle_check(
    limits: Sequence[LatencyLimit], idle_times_of: Callable[[Candidate], IdleTimes]
) -> Check:
    """No SLO is shorter than an idle replica takes."""

    def check(candidate: Candidate) -> Rejection | None:
        idle = idle_times_of(candidate)
        for limit in limits:
            if idle.of(limit.metric) > limit.limit_s:
                return _too_slow(candidate, limit, idle.of(limit.metric))
        return None

    return check


def _too_slow(candidate: Candidate, limit: LatencyLimit, least_s: float) -> Rejection:
    what = {
        "ttft": "one prompt alone takes",
        "tpot": "one sequence alone takes a token every",
        "itl": "one sequence alone takes a token every",
        "e2e": "one request alone takes",
    }[limit.metric]
    constraint: Constraint = "tpot" if limit.metric == "itl" else limit.metric
    name = f"{limit.metric} {limit.statistic}"
    reason = f"{what} {_time(least_s)}, {name} must be within {_time(limit.limit_s)}"
    enough = _time(least_s * 1.05, up=True)
    fix = f"set {name} to {enough} or more, or use more accelerators per replica"
    found = rejection(candidate, constraint, reason, fix)
    return replace(found, gap_ratio=least_s / limit.limit_s)


def _time(seconds: float, *, up: bool = False) -> str:
    """A time as people read it; rounded up where less would not be enough."""
    unit, scale, digits = ("ms", 1e-3, int(seconds < 0.01)) if seconds < 1 else ("s", 1.0, 2)
    grain = scale * 10.0**-digits
    n = ceil(seconds / grain - 1e-9) if up else round(seconds / grain)
    return f"{n * grain / scale:.{digits}f} {unit}"


def count_check(n_least_of: Callable[[Candidate], int], n_most: int | None) -> Check:
    """The least fleet is within the accelerators that the user allows."""

    def check(candidate: Candidate) -> Rejection | None:
        n = candidate.n_accelerators_for(n_least_of(candidate))
        if n_most is None or n <= n_most:
            return None
        reason = f"needs at least {n} accelerators, {n_most} are allowed"
        found = rejection(candidate, "accelerators", reason, f"allow {n} accelerators or more")
        return replace(found, gap_ratio=n / max(n_most, 1))

    return check

"""Disaggregated fleets of one service, in: its aggregated candidates; out: groups beside them.

A replica of such a fleet is a group of engines, xPyD: x prefill prompts, y decode, and KV caches
travel between them. How many of each is a balance: prompts per second of one engine that prefills
against responses per second of one that decodes within its time per token.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil

from gpuplan.candidates.propose import n_in_server
from gpuplan.candidates.prune import idle_check, rejection
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import NotSized, Sized
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.studies.inference.deployment import EvaluatedDeployment
from gpuplan.studies.inference.disaggregation import CONNECTOR_S
from gpuplan.studies.sizing.task import SizingTask

TAIL_RATIO = 1.15  # of a high percentile of the time per token over its mean
BUSY_FRACS = (0.8, 0.6)  # of each role, for fleets that are one group
MOST_ENGINES, MOST_WHOLE = 8, 24  # of a group that is repeated, and of one that is the fleet
N_LAYOUTS = 2  # sizes of tensor parallelism, the fewest accelerators a request first
NO_NETWORK = "prefill and decode span servers, and no offer states a network between them"
STATE_NETWORK = "state prices.offers[].network_gbit_per_s, or site.network of your own"


def split_candidates(
    task: SizingTask, kind: tuple[str, str], accepted: Sequence[Candidate]
) -> Iterator[Candidate | Rejection]:
    """Disaggregated groups on an accelerator at a precision, or why none can stand there."""
    policy = task.scenario.policy.layouts.disaggregation
    if task.streams is None or task.engine.name != "vllm" or policy == "never":
        return
    mine = _singles([c for c in accepted if (str(c.accelerator), c.precision) == kind])
    for base in sorted(mine, key=lambda each: _accelerator_s(task, each))[:N_LAYOUTS]:
        is_slow = idle_check(task.limits, task.evaluator.idle_times)
        found = list(dict.fromkeys(_groups(task, base)))
        placed = [each for each in found if task.context.price(each, 1) is not None]
        if found and not placed and policy == "always":
            yield rejection(found[0], "island", NO_NETWORK, STATE_NETWORK)
        for each in placed:
            yield is_slow(each) or each


def may_be_split(
    task: SizingTask,
    sized: Sequence[Sized],
    eligible: Callable[[Sequence[Sized]], tuple[list[Sized], list[Sized]]],
) -> tuple[list[Sized], list[Sized]]:
    """Fleets that may be chosen and those beside them, by what the policy says of disaggregation.

    No measured fleet checks disaggregated ones yet, so that they are chosen where that is allowed.
    """
    policy = task.scenario.policy.layouts.disaggregation
    wanted = {"always": (True,), "allowed": (True, False)}.get(policy, (False,))
    open_ = [each for each in sized if each.candidate.layout.is_disaggregated in wanted]
    chosen, others = eligible(open_)
    return chosen, [*others, *(each for each in sized if each not in open_)]


def too_wide(sized: Sized) -> Sized | Rejection:
    """A fleet of groups that only a server's own links join has to stay within one server."""
    layout = sized.candidate.layout
    n_most = int(sized.need.n_replicas.max()) + sized.reserve.n_spare
    if not layout.is_disaggregated or layout.network_bytes_per_s is not None or n_most <= 1:
        return sized
    return rejection(sized.candidate, "island", NO_NETWORK, STATE_NETWORK)


def split_assumptions(
    found: Sequence[Sized | Rejection | NotSized],
) -> tuple[Assumption, ...]:
    """What disaggregated fleets rest on, where one was sized."""
    if not any(isinstance(x, Sized) and x.candidate.layout.is_disaggregated for x in found):
        return ()
    return (
        assume(
            "prefill/decode disaggregation",
            f"KV caches travel at the stated network's rate, {CONNECTOR_S * 1e3:g} ms each",
            "simulated from the same step times; no measured disaggregated fleet checks it yet",
            "policy.disaggregation: never",
        ),
    )


def _singles(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Replicas of one engine on whole accelerators of one server, in the engine's usual steps.

    Smaller prefill chunks are for decodes that share an engine with prompts.
    """
    found: dict[ServingLayout, Candidate] = {}
    for each in candidates:
        layout, is_whole = each.layout, each.share is None and each.settings is not None
        if is_whole and layout.network_bytes_per_s is None and layout.n_engines == 1:
            found[layout] = max(found.get(layout, each), each, key=_chunk)
    return list(found.values())


def _chunk(candidate: Candidate) -> int:
    return candidate.settings.max_batch_tokens if candidate.settings else 0


def _paces(task: SizingTask, base: Candidate) -> tuple[float, float]:
    """Prompts per second of an engine that prefills, responses per second of one that decodes."""
    one: EvaluatedDeployment = task.evaluator.prepared(_grouped(base, 1, 1, None))
    tokens = [limit.limit_s for limit in task.limits if limit.metric in ("tpot", "itl")]
    limit_s = min(tokens) / TAIL_RATIO if tokens else None
    return one.prefill_per_s, one.decode_per_s(limit_s)


def _accelerator_s(task: SizingTask, base: Candidate) -> float:
    """Accelerator-seconds of one request, both roles being full."""
    prefill, decode = _paces(task, base)
    if not prefill or not decode:
        return float("inf")
    return base.n_accelerators * (1.0 / prefill + 1.0 / decode)


def _grouped(base: Candidate, n_prefill: int, n_decode: int, network: float | None) -> Candidate:
    layout = replace(
        base.layout, n_prefill=n_prefill, n_decode=n_decode, network_bytes_per_s=network
    )
    return replace(base, layout=layout)


def _groups(task: SizingTask, base: Candidate) -> Iterator[Candidate]:
    """Whole fleets inside one server; over a network, whole fleets and groups to repeat."""
    prefill, decode = _paces(task, base)
    if not prefill or not decode or task.peak_per_s <= 0:
        return
    networks = task.context.networks.get(str(base.accelerator), ())
    n_most = n_in_server(task.evaluator.accelerator(base)) // base.n_accelerators
    for n_prefill, n_decode in whole_fleets(task.peak_per_s, prefill, decode):
        if n_prefill + n_decode <= n_most:
            yield _grouped(base, n_prefill, n_decode, None)
        if n_prefill + n_decode <= MOST_WHOLE:
            yield from (_grouped(base, n_prefill, n_decode, rate) for rate in networks[-1:])
    for n_prefill, n_decode in balanced(prefill, decode):
        yield from (_grouped(base, n_prefill, n_decode, rate) for rate in networks[-1:])


def whole_fleets(peak_per_s: float, prefill: float, decode: float) -> list[tuple[int, int]]:
    """Engines of each role for all of the load, at a few utilizations of either."""
    found = (
        (ceil(peak_per_s / (one * prefill)), ceil(peak_per_s / (other * decode)))
        for one in BUSY_FRACS
        for other in BUSY_FRACS
    )
    return sorted(set(found), key=lambda group: (sum(group), group))


def balanced(prefill: float, decode: float) -> list[tuple[int, int]]:
    """The smallest group within 5 % of the most that an engine can carry, and the best of three."""

    def each(group: tuple[int, int]) -> float:
        return min(group[0] * prefill, group[1] * decode) / sum(group)

    sizes = range(1, MOST_ENGINES)
    groups = [(x, y) for x in sizes for y in sizes if x + y <= MOST_ENGINES]
    best = max(map(each, groups))
    near = min((g for g in groups if each(g) >= 0.95 * best), key=sum)
    small = max((g for g in groups if sum(g) <= 3), key=each)
    return list(dict.fromkeys((near, small)))

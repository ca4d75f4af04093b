"""A closed loop: so many users who ask, wait for the answer, think, and ask again."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuplan.demand.lengths import NEAR_RATIOS, within_context
from gpuplan.demand.sessions import Conversation, closed_loop
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import floats
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.demand import RequestShape
from gpuplan.domain.scenario.workload import Serving
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
from gpuplan.domain.traffic.stream import ClosedLoop, Grouping, requests_of
from gpuplan.errors import InputError, Problem
from gpuplan.studies.inference.prefix import fresh_requests
from gpuplan.studies.replay.marks import with_adapters
from gpuplan.units import DAY

MOST_REQUESTS = 50_000_000  # all are kept in memory
MOST_THINK_S = DAY
MOST_TURNS = 10_000
N_EACH = 50  # requests of one user where no number is given
LEAST_EACH = 16
DESCRIBED_REQUESTS = 200_000  # of a described loop, about
COUNTED_FRAC = 0.75  # of a described loop's rows are asked before all end together


class Users(NamedTuple):
    """What the users of a closed loop ask, and how long they think."""

    shape: RequestShape
    think_s: float  # mean pause between a response and the next request
    cycle_s: float  # about from request to request: their first ones are spread over it
    max_tokens: int | None = None  # that the model reads and writes in one request


def users_loop(users: Users, n_users: int, n_each: int, *, seed: int) -> ClosedLoop:
    """So many requests of each user, prompts without what the prefix cache holds.

    Users do not begin together, and responses of one length are drawn close to it: were all quite
    alike, those that end at once would be sent to the replica that they leave, and stay together.
    """
    shape = Conversation(
        message=users.shape.input,
        answer=users.shape.output,
        n_turns_mean=1.0,
        think_s=users.think_s,
        answer_s_per_token=0.0,
    )
    loop = closed_loop(n_users, n_each, request=shape, seed=seed)
    output = loop.output_tokens.astype(np.float64)
    if users.shape.output.shape == "fixed":
        output *= stream(seed, "output lengths").uniform(*NEAR_RATIOS, len(output))
    requested = requests_of(
        np.zeros(len(loop.user)), loop.input_tokens, np.maximum(1, np.rint(output))
    )
    requested = with_adapters(requested, users.shape.adapters, seed=seed)
    requested = within_context(requested, users.max_tokens)
    requested = fresh_requests(requested, users.shape.prefix_hit_frac.mid)
    # Think times of exactly this mean: N = X (R + Z) holds in a short run as well.
    ratio = users.think_s / float(loop.think_s.mean()) if users.think_s else 0.0
    think_s = ratio * loop.think_s
    think_s[::n_each] = stream(seed, "first requests").uniform(0.0, users.cycle_s, n_users)
    return ClosedLoop(
        user=loop.user,
        think_s=floats(think_s),
        input_tokens=requested.input_tokens,
        output_tokens=requested.output_tokens,
        adapter=requested.adapter,
    )


def users_of(work: Serving, max_tokens: int | None = None) -> Users:
    """The users that a workload describes; a cycle is a response at its SLOs and a think time."""
    think_s = work.request.think_s or 0.0
    cycle_s = work.slo.response_s(work.request.output.mean_tokens) + think_s
    return Users(work.request, think_s, cycle_s, max_tokens)


def described_loop(work: Serving, *, seed: int) -> LoadSource:
    """The closed loop of a workload, as plans size it; users have rows to spare at the end."""
    n_users = max(1, round(work.arrivals.n_concurrent or 1.0))
    n_each = max(LEAST_EACH, min(N_EACH, DESCRIBED_REQUESTS // n_users))
    loop = users_loop(users_of(work), n_users, n_each, seed=seed)
    grouping = Grouping(session=loop.user, adapter=loop.adapter)
    requests = requests_of(
        np.zeros(len(loop.user)), loop.input_tokens, loop.output_tokens, grouping=grouping
    )
    n_all = round(COUNTED_FRAC * n_users * n_each)
    value, why = f"{n_all:,}", "each user asks often enough for the loop to settle"
    return LoadSource(
        requests=requests,
        source="scenario",
        assumptions=(assume("requests", value, why, ""),),
        loop=loop,
        n_loop=n_all,
        cached_input_frac=work.request.prefix_hit_frac.mid,
    )


class Wanted(NamedTuple):
    """Figures of a loop that are all there."""

    n_users: int
    n_all: int
    think_s: float

    @property
    def n_each(self) -> float:
        """Of a user, on average."""
        return self.n_all / self.n_users


def closed_load(load: DrawnLoad, *, seed: int) -> LoadSource:
    """Users' requests in the order of the users; when they are asked is the fleet's doing.

    Each has more rows than its share: who is quick asks more often before all end together.
    """
    _check(load)
    wanted = _wanted(load)
    assert load.input is not None
    assert load.output is not None
    shape = Conversation(
        message=load.input,
        answer=load.output,
        n_turns_mean=load.n_turns_mean or 1.0,
        think_s=wanted.think_s,
        answer_s_per_token=0.0,
    )
    n_rows = math.ceil(1.25 * wanted.n_each + 8.0 * math.sqrt(wanted.n_each))
    loop = closed_loop(wanted.n_users, n_rows, request=shape, seed=seed)
    is_conversation = loop.prefix_tokens is not None
    grouping = Grouping(
        session=loop.user,
        prefix_group=loop.user if is_conversation else None,
        prefix_tokens=loop.prefix_tokens,
    )
    requests = requests_of(
        np.zeros(len(loop.user)), loop.input_tokens, loop.output_tokens, grouping=grouping
    )
    return LoadSource(
        requests=requests,
        source="drawn",
        assumptions=_assumed(load, wanted),
        loop=loop,
        n_loop=wanted.n_all,
    )


def ended_together(
    loop: ClosedLoop, n: int | None, replay: Callable[[ClosedLoop], Outcome]
) -> ClosedLoop:
    """The loop without what is asked after the n-th request, as a first run shows.

    Were each user to ask equally often, the quick would be done first, and the end of the run
    would be that of a smaller crowd.
    """
    if n is None or n >= len(loop.user):
        return loop
    requested = np.bincount(replay(loop).requests.session[:n], minlength=int(loop.user[-1]) + 1)
    begins = np.searchsorted(loop.user, loop.user, side="left")
    return loop.take(np.arange(len(loop.user)) - begins < requested[loop.user])


def first_of(loop: ClosedLoop) -> ClosedLoop:
    """The first request alone."""
    return loop.take([0])


def _check(load: DrawnLoad) -> None:
    problems = []
    if load.n_users is None or load.n_users < 1:
        problems.append(Problem("--users", f"got {load.n_users}", "give 1 or more, e.g. 64"))
    if load.think_s is not None and not 0 <= load.think_s <= MOST_THINK_S:
        fix = f"give 0 to {MOST_THINK_S:,.0f} seconds"
        problems.append(Problem("--think-time-s", f"got {load.think_s:g}", fix))
    n_each = N_EACH if load.n_requests is None else 1
    if max((load.n_users or 0) * n_each, load.n_requests or 0) > MOST_REQUESTS:
        what = f"{load.n_users:,} users who ask {load.n_requests or N_EACH} times or more"
        problems.append(Problem("--users", what, f"at most {MOST_REQUESTS:,} requests in total"))
    for flag, lengths in (("--input-tokens", load.input), ("--output-tokens", load.output)):
        if lengths is None or not (np.isfinite(lengths.mean_tokens) and lengths.mean_tokens > 0):
            problems.append(Problem(flag, "missing", "give the tokens of a request, e.g. 1000"))
    if load.n_requests is not None and load.n_requests < 1:
        problems.append(Problem("--requests", f"got {load.n_requests}", "give 1 or more"))
    for flag, value in (("--rate", load.requests_per_s), ("--duration", load.duration_s)):
        if value is not None:
            what = "with a closed loop, where the answers set the pace"
            problems.append(Problem(flag, what, "use --users, --think-time-s and --requests"))
    problems += turn_problems(load)
    if problems:
        raise InputError("simulate", problems)


def turn_problems(load: DrawnLoad) -> list[Problem]:
    """A conversation has one turn at least, and an end."""
    n = load.n_turns_mean
    if n is None or 1 <= n <= MOST_TURNS:
        return []
    return [Problem("--turns", f"got {n:g}", f"must be 1 to {MOST_TURNS:,}")]


def _wanted(load: DrawnLoad) -> Wanted:
    n_users = load.n_users or 1
    n_all = N_EACH * n_users if load.n_requests is None else max(n_users, load.n_requests)
    return Wanted(n_users, n_all, load.think_s or 0.0)


def _assumed(load: DrawnLoad, wanted: Wanted) -> tuple[Assumption, ...]:
    found = []
    if load.think_s is None:
        found.append(assume("think time", "0 s", "users ask again at once", "--think-time-s"))
    if load.n_requests != wanted.n_all:
        why = f"{wanted.n_each:g} of each user on average"
        value = f"{wanted.n_all:,}"
        found.append(assume("requests", value, why, "--requests"))
    return tuple(found)

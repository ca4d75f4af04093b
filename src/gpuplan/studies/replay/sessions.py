"""Conversations that begin by law: every turn holds all that was said before."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuplan.demand.sessions import Conversation, conversations
from gpuplan.domain.columns import Floats
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource

ANSWER_S_PER_TOKEN = 0.02  # Assumption: a reader's pace, while turns are drawn


def talking_load(
    load: DrawnLoad,
    assumptions: tuple[Assumption, ...],
    starts_of: Callable[[DrawnLoad], Floats],
    *,
    seed: int,
) -> LoadSource:
    """Requests at the rate that was asked for on average: each conversation brings its turns."""
    assert load.input is not None
    assert load.output is not None
    n_turns = load.n_turns_mean or 1.0
    shape = Conversation(
        message=load.input,
        answer=load.output,
        n_turns_mean=n_turns,
        think_s=load.think_s or 0.0,
        answer_s_per_token=ANSWER_S_PER_TOKEN,
    )
    requests = conversations(starts_of(_starting(load, n_turns)), shape, seed=seed)
    if load.n_requests is not None:
        requests = requests.take(np.arange(min(load.n_requests, len(requests))))
    assumed = (*assumptions, *_assumed(load, n_turns))
    return LoadSource(requests=requests, source="drawn", assumptions=assumed)


def _starting(load: DrawnLoad, n_turns: float) -> DrawnLoad:
    """The law of the beginnings: so many fewer than requests as a conversation has turns."""
    rate = None if load.requests_per_s is None else load.requests_per_s / n_turns
    phases = tuple(
        replace(phase, requests_per_s=phase.requests_per_s / n_turns) for phase in load.phases
    )
    return replace(load, requests_per_s=rate, phases=phases)


def _assumed(load: DrawnLoad, n_turns: float) -> list[Assumption]:
    found = [
        assume(
            "conversations",
            f"{n_turns:g} turns on average",
            "the rate is of requests; the next turn comes after "
            f"{ANSWER_S_PER_TOKEN * 1e3:g} ms a token of the answer and the pause",
            "--turns, --think-time-s",
        )
    ]
    if load.think_s is None:
        found.append(assume("think time", "0 s", "users ask again at once", "--think-time-s"))
    return found

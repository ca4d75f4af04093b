"""Conversations: several requests of one user, each carrying all that was said before.

Turn k asks with everything said so far and one new message; what was said before is its shared
prefix. Between turns pass the time of the answer and the time the user thinks.
"""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.demand.lengths import draw_lengths
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.traffic.stream import ClosedLoop, Grouping, Requests, requests_of
from gpuplan.errors import InputError, one


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What one conversation looks like."""

    message: TokenLengths  # what the user adds in each turn
    answer: TokenLengths
    n_turns_mean: float  # geometric: the user stops after each turn with the same chance
    think_s: float  # mean pause between an answer and the next turn, exponential
    answer_s_per_token: float  # Assumption: how fast answers stream while traffic is drawn
    system_tokens: int = 0  # common to all conversations
    max_context_tokens: int | None = None  # a conversation ends before it would exceed this


def conversations(starts_s: Floats, shape: Conversation, *, seed: int) -> Requests:
    """All turns of conversations that begin at these times, in order of arrival.

    The open-loop reading: a turn comes a fixed answer time and a random pause after the one
    before, whatever the fleet does. `closed_loop` gives the other reading.
    """
    _check(shape)
    session, turn, n = _turns(len(starts_s), shape.n_turns_mean, seed)
    message = draw_lengths(shape.message, n, stream(seed, "input lengths"))
    answer = draw_lengths(shape.answer, n, stream(seed, "output lengths"))
    pause = answer * shape.answer_s_per_token + stream(seed, "think").exponential(1.0, n) * (
        shape.think_s
    )
    said = _before(message + answer, session, turn) + shape.system_tokens
    arrive = np.asarray(starts_s)[session] + _before(pause, session, turn)
    rows = _within(shape, said + message + answer)
    rows = rows[np.argsort(arrive[rows], kind="stable")]
    grouping = Grouping(
        session=session[rows], prefix_group=session[rows], prefix_tokens=_shared(said, turn)[rows]
    )
    return requests_of(arrive[rows], (said + message)[rows], answer[rows], grouping=grouping)


def closed_loop(n_users: int, n_each: int, *, request: Conversation, seed: int) -> ClosedLoop:
    """Users who each wait for their answer, think, and ask again.

    With more than one turn to a conversation, a prompt holds all that was said before in it; a
    user who has had enough begins another, from nothing.
    """
    _check(request)
    if n_users < 1 or n_each < 1:
        what = f"got {n_users} users with {n_each} requests each"
        raise one(InputError, "closed loop", "users and requests", what, "at least 1 of each")
    n = n_users * n_each
    think = stream(seed, "think").exponential(1.0, n) * request.think_s
    message = draw_lengths(request.message, n, stream(seed, "input lengths"))
    answer = draw_lengths(request.answer, n, stream(seed, "output lengths"))
    loop = ClosedLoop(
        user=ints(np.repeat(np.arange(n_users), n_each)),
        think_s=floats(think),
        input_tokens=message,
        output_tokens=answer,
    )
    if request.n_turns_mean == 1.0:
        return loop
    is_first = stream(seed, "turns").random(n) < 1.0 / request.n_turns_mean
    is_first[::n_each] = True
    talk = np.cumsum(is_first) - 1
    said = ints(_before(message + answer, talk, np.where(is_first, 0, 1)))
    return replace(loop, input_tokens=ints(said + message), prefix_tokens=said)


def _turns(n_sessions: int, mean: float, seed: int) -> tuple[Ints, Ints, int]:
    """Session and turn of each request, session by session."""
    n_turns = stream(seed, "turns").geometric(1.0 / mean, n_sessions)
    session = np.repeat(np.arange(n_sessions), n_turns)
    first = np.cumsum(n_turns) - n_turns
    return session, np.arange(len(session)) - np.repeat(first, n_turns), len(session)


def _before(values: Floats | Ints, session: Ints, turn: Ints) -> Floats:
    """Sum over the earlier turns of the same session."""
    total = np.cumsum(values, dtype=np.float64) - values
    return floats(total - total[turn == 0][session])


def _shared(said: Floats, turn: Ints) -> Ints:
    """Nothing is shared in a first turn but the system prompt, which is not the session's own."""
    return ints(np.where(turn == 0, 0, said))


def _within(shape: Conversation, context: Floats) -> Ints:
    if shape.max_context_tokens is None:
        return np.arange(len(context))
    # Context only grows, so what is left of a session is its beginning.
    return np.flatnonzero(context <= shape.max_context_tokens)


def _check(shape: Conversation) -> None:
    named = {
        "turns": shape.n_turns_mean - 1,
        "think time": shape.think_s,
        "answer time": shape.answer_s_per_token,
        "system prompt": shape.system_tokens,
    }
    for name, value in named.items():
        if not (np.isfinite(value) and value >= 0):
            least = "at least 1" if name == "turns" else "0 or more"
            raise one(InputError, "conversations", name, "is too small", f"must be {least}")

"""Conversations: several requests of one user, each carrying the context of those before.

The prompt of a turn is the context so far and one new message; the context is its cached prefix.
Between turns pass the time of the output and the think time of the user.
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
    """The shape of one conversation: its turns, lengths and think time."""

    message: TokenLengths  # what the user adds in each turn
    answer: TokenLengths
    n_turns_mean: float  # geometric: the user stops after each turn with the same chance
    think_s: float  # mean pause between an output and the next turn, exponential
    answer_s_per_token: float  # Assumption: how fast outputs stream while traffic is drawn
    system_tokens: int = 0  # common to all conversations
    max_context_tokens: int | None = None  # a conversation ends before it would exceed this


def conversations(starts_s: Floats, shape: Conversation, *, seed: int) -> Requests:
    """All turns of conversations that begin at these times, in order of arrival.

    The open-loop reading: a turn comes a fixed output time and a random pause after the one
    before, whatever the fleet does. `closed_loop` gives the other reading.
    """
    _check(shape)
    session, turn, n = _turns(len(starts_s), shape.n_turns_mean, seed)
    message = draw_lengths(shape.message, n, stream(seed, "input lengths"))
    output = draw_lengths(shape.answer, n, stream(seed, "output lengths"))
    pause = output * shape.answer_s_per_token + stream(seed, "think").exponential(1.0, n) * (
        shape.think_s
    )
    context = _before(message + output, session, turn) + shape.system_tokens
    arrive = np.asarray(starts_s)[session] + _before(pause, session, turn)
    rows = _within(shape, context + message + output)
    rows = rows[np.argsort(arrive[rows], kind="stable")]
    grouping = Grouping(
        session=session[rows],
        prefix_group=session[rows],
        prefix_tokens=_shared(context, turn)[rows],
    )
    return requests_of(arrive[rows], (context + message)[rows], output[rows], grouping=grouping)


def closed_loop(n_users: int, n_each: int, *, request: Conversation, seed: int) -> ClosedLoop:
    """Users who each wait for their response, think, and send the next request.

    With more than one turn to a conversation, a prompt holds its context so far; a user who ends
    one begins another with an empty context.
    """
    _check(request)
    if n_users < 1 or n_each < 1:
        what = f"got {n_users} users with {n_each} requests each"
        raise one(InputError, "closed loop", "users and requests", what, "at least 1 of each")
    n = n_users * n_each
    think = stream(seed, "think").exponential(1.0, n) * request.think_s
    message = draw_lengths(request.message, n, stream(seed, "input lengths"))
    output = draw_lengths(request.answer, n, stream(seed, "output lengths"))
    loop = ClosedLoop(
        user=ints(np.repeat(np.arange(n_users), n_each)),
        think_s=floats(think),
        input_tokens=message,
        output_tokens=output,
    )
    if request.n_turns_mean == 1.0:
        return loop
    is_first = stream(seed, "turns").random(n) < 1.0 / request.n_turns_mean
    is_first[::n_each] = True
    conversation = np.cumsum(is_first) - 1
    context = ints(_before(message + output, conversation, np.where(is_first, 0, 1)))
    return replace(loop, input_tokens=ints(context + message), prefix_tokens=context)


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


def _shared(context: Floats, turn: Ints) -> Ints:
    """A first turn shares nothing but the system prompt, which is not the session's own."""
    return ints(np.where(turn == 0, 0, context))


def _within(shape: Conversation, context: Floats) -> Ints:
    if shape.max_context_tokens is None:
        return np.arange(len(context))
    # Context only grows, so what is left of a session is its beginning.
    return np.flatnonzero(context <= shape.max_context_tokens)


def _check(shape: Conversation) -> None:
    least = {"turns": 1.0, "think time": 0.0, "output time": 0.0, "system prompt": 0.0}
    figures = shape.n_turns_mean, shape.think_s, shape.answer_s_per_token, shape.system_tokens
    for (name, bound), value in zip(least.items(), figures, strict=True):
        if not (np.isfinite(value) and value >= bound):
            fix = f"must be at least {bound:g}, and finite"
            raise one(InputError, "conversations", name, f"got {value:g}", fix)

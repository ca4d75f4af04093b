"""Requests as they come: one row per request, in order of arrival."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.noun import dataclass

NONE = -1  # of a session or a group; kernels have no other way to say so


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Read-only columns of equal length; row i is one request, arrivals never fall."""

    arrive_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    session: Ints  # -1: none
    prefix_group: Ints  # -1: none; requests of a group share their first prefix_tokens
    prefix_tokens: Ints  # leading tokens that an earlier request of the group asked or was answered
    priority: Ints  # lower goes first
    max_tokens: Ints  # of the answer, as asked for; -1: not known
    adapter: Ints  # a LoRA adapter by number; -1: none

    def __len__(self) -> int:
        return len(self.arrive_s)

    def columns(self) -> Iterator[Floats | Ints]:
        """Every column, in the order of the fields."""
        for field in fields(self):
            yield getattr(self, field.name)

    def take(self, rows: ArrayLike) -> "Requests":
        """The named rows, or those of a mask, in the order given."""
        chosen = np.asarray(rows)
        return Requests(
            arrive_s=floats(self.arrive_s[chosen]),
            input_tokens=ints(self.input_tokens[chosen]),
            output_tokens=ints(self.output_tokens[chosen]),
            session=ints(self.session[chosen]),
            prefix_group=ints(self.prefix_group[chosen]),
            prefix_tokens=ints(self.prefix_tokens[chosen]),
            priority=ints(self.priority[chosen]),
            max_tokens=ints(self.max_tokens[chosen]),
            adapter=ints(self.adapter[chosen]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """What requests share and ask for; a column that is None means that none have it."""

    session: ArrayLike | None = None
    prefix_group: ArrayLike | None = None
    prefix_tokens: ArrayLike | None = None
    priority: ArrayLike | None = None
    max_tokens: ArrayLike | None = None
    adapter: ArrayLike | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixBlocks:
    """Content of prompts as block numbers: equal leading numbers are equal leading tokens.

    Blocks of request i are `block[first[i]:first[i + 1]]`, each of `n_block_tokens` tokens; the
    last may be partly filled. Numbers are dense: 0 … n_distinct − 1, in order of first use.
    """

    n_block_tokens: int
    first: Ints  # one more than there are requests
    block: Ints
    # Blocks are full, and go on over the response. None: as their numbers tell.
    has_responses: bool | None = None

    @property
    def n_distinct(self) -> int:
        """How many different blocks there are."""
        return int(self.block.max()) + 1 if len(self.block) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """Users who ask, wait for the answer, think, and ask again; one row per request.

    Rows of a user stand together, in order; a row is asked `think_s` after the answer to the row
    before it, or after time 0.
    """

    user: Ints
    think_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    prefix_tokens: Ints | None = None  # of a prompt, that stood in the user's rows before it
    adapter: Ints | None = None  # LoRA adapter that it asks for

    def take(self, rows: ArrayLike) -> "ClosedLoop":
        """The named rows, or those of a mask."""
        chosen = np.asarray(rows)
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {name: column[chosen] for name, column in columns.items() if column is not None}
        think_s = floats(taken.pop("think_s"))
        return ClosedLoop(think_s=think_s, **{name: ints(each) for name, each in taken.items()})


def requests_of(
    arrive_s: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    *,
    grouping: Grouping | None = None,
) -> Requests:
    """Checked columns; ValueError where they differ in length, fall in time or are negative."""
    arrive = floats(arrive_s)
    groups = grouping if grouping is not None else Grouping()
    requests = Requests(
        arrive_s=arrive,
        input_tokens=ints(input_tokens),
        output_tokens=ints(output_tokens),
        session=_or_constant(groups.session, NONE, len(arrive)),
        prefix_group=_or_constant(groups.prefix_group, NONE, len(arrive)),
        prefix_tokens=_or_constant(groups.prefix_tokens, 0, len(arrive)),
        priority=_or_constant(groups.priority, 0, len(arrive)),
        max_tokens=_or_constant(groups.max_tokens, NONE, len(arrive)),
        adapter=_or_constant(groups.adapter, NONE, len(arrive)),
    )
    _check(requests)
    return requests


def alike(
    requests: Requests, arrive_s: ArrayLike, input_tokens: ArrayLike | None = None
) -> Requests:
    """The same outputs, as asked for, at other times; of conversations nothing is known."""
    tokens = requests.input_tokens if input_tokens is None else input_tokens
    grouping = Grouping(max_tokens=requests.max_tokens, adapter=requests.adapter)
    return requests_of(arrive_s, tokens, requests.output_tokens, grouping=grouping)


def no_requests() -> Requests:
    """A stream of nothing."""
    return requests_of([], [], [])


def _or_constant(values: ArrayLike | None, constant: int, n: int) -> Ints:
    return ints(np.full(n, constant)) if values is None else ints(values)


def _check(requests: Requests) -> None:
    if any(column.shape != (len(requests),) for column in requests.columns()):
        raise ValueError("columns of requests differ in length")
    if not np.all(np.isfinite(requests.arrive_s)):
        raise ValueError("an arrival is not finite")
    if np.any(np.diff(requests.arrive_s) < 0):
        raise ValueError("arrivals fall")
    if min(_least(requests.input_tokens), _least(requests.output_tokens)) < 0:
        raise ValueError("a length is negative")
    if np.any(requests.prefix_tokens > requests.input_tokens):
        raise ValueError("a shared prefix is longer than its prompt")


def _least(column: Ints) -> int:
    return int(column.min()) if len(column) else 0

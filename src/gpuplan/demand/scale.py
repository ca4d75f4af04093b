"""More or less of a recorded load, as bursty as it was.

Squeezing time would make every burst as much faster as the load is larger. Instead, up:
superpose copies of the trace, each shifted in time and wrapped around its end. Counts of
independent copies add in mean and in variance, so their ratio, the index of dispersion, stays; at
times longer than the shift (the day) copies move together, as a larger crowd of the same people
would. Down: keep whole clients. Where no request says whose it is, single requests are kept by
chance p, and the index I becomes 1 + p (I - 1): nearer to Poisson, by arithmetic.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.stream import NONE, Grouping, Requests, requests_of
from gpuplan.errors import InputError, one

SHIFT_S = 1800.0
MAX_REQUESTS = 500_000_000


def scaled(requests: Requests, factor: float, *, seed: int, shift_s: float = SHIFT_S) -> Requests:
    """The load times this factor: whole copies shifted in time, and a part of one more."""
    _check(requests, factor, shift_s)
    n_copies = int(factor)
    rest = factor - n_copies
    copies = [_copy(requests, i, seed=seed, shift_s=shift_s) for i in range(n_copies)]
    if rest > 0:
        part = _copy(requests, n_copies, seed=seed, shift_s=shift_s)
        copies.append(thinned_by_client(part, rest, seed=seed))
    return merged(copies)


def thinned_by_client(requests: Requests, keep_frac: float, *, seed: int) -> Requests:
    """The requests of some clients, all of each; single requests where no session is known."""
    rng = stream(seed, "thinning")
    client = client_of(requests)
    # One draw for each client that there could be, so that a client's luck is its own.
    n = int(client.max()) + 1 if len(client) else 0
    is_kept = rng.uniform(size=n) < keep_frac
    return requests.take(np.flatnonzero(is_kept[client]))


def client_of(requests: Requests) -> Ints:
    """Whose each request is: its session, else its prefix group, else itself; dense numbers."""
    n = len(requests)
    top = int(max(requests.session.max(initial=NONE), requests.prefix_group.max(initial=NONE))) + 1
    single = np.arange(n) + 2 * top
    by_group = np.where(requests.prefix_group != NONE, requests.prefix_group + top, single)
    client = np.where(requests.session != NONE, requests.session, by_group)
    return ints(np.unique(client, return_inverse=True)[1])


def merged(parts: list[Requests]) -> Requests:
    """One stream of several, in order of arrival; of equal times the earlier part comes first."""
    if not parts:
        return requests_of([], [], [])
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Requests.__dataclass_fields__
    }
    order = np.argsort(joined["arrive_s"], kind="stable")
    columns = {name: column[order] for name, column in joined.items()}
    groups = ("session", "prefix_group", "prefix_tokens", "priority")
    return requests_of(
        columns["arrive_s"],
        columns["input_tokens"],
        columns["output_tokens"],
        grouping=Grouping(**{name: columns[name] for name in groups}),
    )


def served(requests: Requests) -> tuple[Requests, int]:
    """The requests with at least one token asked and one answered, and how many had not."""
    is_served = (requests.input_tokens > 0) & (requests.output_tokens > 0)
    return requests.take(np.flatnonzero(is_served)), int(len(requests) - is_served.sum())


def _copy(requests: Requests, number: int, *, seed: int, shift_s: float) -> Requests:
    """Copy 0 is the trace itself; others are shifted, and their conversations are their own."""
    if number == 0:
        return requests
    start, span = float(requests.arrive_s[0]), _span_s(requests.arrive_s)
    drawn = stream(seed, "shift", member=number).uniform(-shift_s, shift_s)
    arrive = start + (requests.arrive_s - start + drawn) % span
    order = np.argsort(arrive, kind="stable")
    moved = requests.take(order)
    offset = (int(requests.session.max(initial=NONE)) + 1) * number
    is_own = _is_private(moved)
    base = (int(requests.prefix_group.max(initial=NONE)) + 1) * number
    grouping = Grouping(
        session=np.where(moved.session == NONE, NONE, moved.session + offset),
        prefix_group=np.where(is_own, moved.prefix_group + base, moved.prefix_group),
        prefix_tokens=moved.prefix_tokens,
        priority=moved.priority,
    )
    return requests_of(
        floats(arrive[order]), moved.input_tokens, moved.output_tokens, grouping=grouping
    )


def _is_private(requests: Requests) -> NDArray[np.bool_]:
    """Whether the prefix of a request belongs to one session alone, as its own history does."""
    group, session = requests.prefix_group, requests.session
    has_both = (group != NONE) & (session != NONE)
    n = int(group.max(initial=NONE)) + 2
    low = np.full(n, np.iinfo(np.int64).max)
    high = np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(low, group, session)
    np.maximum.at(high, group, session)
    return np.asarray(has_both & (low[group] == high[group]), dtype=np.bool_)


def _span_s(arrive_s: Floats) -> float:
    """How long the trace is, with one mean gap after its last request."""
    first, last = float(arrive_s[0]), float(arrive_s[-1])
    n_gaps = max(1, len(arrive_s) - 1)
    return (last - first) * (1.0 + 1.0 / n_gaps) or 1.0


def _check(requests: Requests, factor: float, shift_s: float) -> None:
    if not (np.isfinite(factor) and factor > 0):
        raise one(InputError, "scale", "factor", f"got {factor:g}", "must be above 0, and finite")
    if not (np.isfinite(shift_s) and shift_s > 0):
        raise one(InputError, "scale", "shift", f"got {shift_s:g}", "must be above 0 seconds")
    if not len(requests):
        raise one(InputError, "scale", "requests", "there are none", "give at least one")
    if len(requests) * factor > MAX_REQUESTS:
        what = f"{len(requests) * factor:.3g} requests"
        raise one(InputError, "scale", "factor", what, f"at most {MAX_REQUESTS:,}")

"""More or less of a recorded load, as bursty as it was.

Squeezing time would make every burst as much faster as the load is larger. Instead, up:
superpose copies of the trace, each shifted in time and wrapped around its end. Counts of
independent copies add in mean and in variance, so their ratio, the index of dispersion, stays; at
times longer than the shift (the day) copies move together, as more clients of the same population
would. A few copies may by chance fill each other's lulls: of several shifts drawn, the one is taken
that leaves the index nearest to the trace's own.

Down: keep whole clients. Where no request says whose it is, single requests are kept by chance p,
and the index I becomes 1 + p (I - 1): nearer to Poisson, by arithmetic.

Text of the prompts of a scaled load: what a service says to all, and what each copy says.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.demand.streams import require_positive, stream
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.traffic.stream import NONE, Grouping, PrefixBlocks, Requests, requests_of
from gpuplan.errors import InputError, one

COMMON_FRAC = 0.01
LEAST_COMMON = 10


SHIFT_S = 1800.0
MAX_REQUESTS = 500_000_000
WINDOWS_S = (1.0, 10.0, 60.0)
LEAST_WINDOWS = 20
MOST_BINS = 1_000_000
N_TRIED = 32


class Scaled(NamedTuple):
    """A load of several copies, and where each request comes from."""

    requests: Requests
    row: Ints  # of the trace
    copy: Ints


class Copy(NamedTuple):
    """The trace, or a part of it, at another time."""

    requests: Requests
    row: Ints
    number: int


def scaled_rows(
    requests: Requests, factor: float, *, seed: int, shift_s: float = SHIFT_S
) -> Scaled:
    """The load times this factor: whole copies shifted in time, and a part of one more."""
    _check(requests, factor, shift_s)
    counted, copies = Counted(requests.arrive_s), list[Copy]()
    n_copies = int(factor)
    for number in range(n_copies + (factor > n_copies)):
        row = np.arange(len(requests))
        if number == n_copies:
            row = retained_by_client(requests, factor - n_copies, seed=seed)
        moved_s = 0.0
        if number:
            draw = stream(seed, "shift", member=number)
            moved_s = counted.best(draw.uniform(-shift_s, shift_s, N_TRIED), row)
        if len(row):
            counted.add(moved_s, row)
            copies.append(_copy(requests, row, number=number, moved_s=moved_s))
    order, found = _merged([copy.requests for copy in copies])
    row = np.concatenate([copy.row for copy in copies]) if copies else np.zeros(0, dtype=np.int64)
    copy_of = np.repeat([copy.number for copy in copies], [len(copy.row) for copy in copies])
    return Scaled(found, ints(row[order]), ints(copy_of[order]))


class Counted:
    """Arrivals of the copies so far, by bins of a circle as long as the trace."""

    def __init__(self, arrive_s: Floats) -> None:
        span_s = _span_s(arrive_s)
        self._bin_s = max(WINDOWS_S[0], span_s / MOST_BINS)
        self._n = max(1, round(span_s / self._bin_s))
        self._bin_s = span_s / self._n
        self._place = ((arrive_s - arrive_s[0]) / self._bin_s).astype(np.int64) % self._n
        self._sum = np.zeros(self._n)
        widths = [round(window_s / self._bin_s) for window_s in WINDOWS_S]
        self._widths = [w for w in widths if w >= 1 and self._n >= LEAST_WINDOWS * w]
        self._aim = self._indices(np.bincount(self._place, minlength=self._n).astype(float))

    def add(self, moved_s: float, row: Ints) -> None:
        """Another copy of these rows."""
        self._sum = self._sum + self._moved(moved_s, row)

    def best(self, tried_s: Floats, row: Ints) -> float:
        """Of these shifts the one that leaves the load as bursty as the trace."""
        if not self._widths or not len(row):
            return float(tried_s[0])
        off = [self._off(self._sum + self._moved(float(moved_s), row)) for moved_s in tried_s]
        return float(tried_s[int(np.argmin(off))])

    def _moved(self, moved_s: float, row: Ints) -> Floats:
        counts = np.bincount(self._place[row], minlength=self._n)
        return floats(np.roll(counts, round(moved_s / self._bin_s)))

    def _off(self, counts: Floats) -> float:
        """How far the indices are from those of the trace, as squares of ratios' logarithms."""
        found = self._indices(counts)
        pairs = zip(found, self._aim, strict=True)
        return sum(float(np.log(a / b)) ** 2 for a, b in pairs if a > 0 and b > 0)

    def _indices(self, counts: Floats) -> list[float]:
        """Variance over mean in windows of each width."""
        found = []
        for width in self._widths:
            n = self._n // width
            sums = counts[: n * width].reshape(n, width).sum(axis=1)
            found.append(float(sums.var() / sums.mean()) if sums.mean() > 0 else 0.0)
        return found


def retained_by_client(requests: Requests, keep_frac: float, *, seed: int) -> Ints:
    """Rows of the clients that stay."""
    rng = stream(seed, "thinning")
    client = client_of(requests)
    # One draw for each client that there could be, so that a client's luck is its own.
    n = int(client.max()) + 1 if len(client) else 0
    is_kept = rng.uniform(size=n) < keep_frac
    return np.flatnonzero(is_kept[client])


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
    return _merged(parts)[1]


def _merged(parts: list[Requests]) -> tuple[Ints, Requests]:
    """The order in which rows of the parts stand, and the stream."""
    if not parts:
        return ints([]), requests_of([], [], [])
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Requests.__dataclass_fields__
    }
    order = np.argsort(joined["arrive_s"], kind="stable")
    columns = {name: column[order] for name, column in joined.items()}
    groups = ("session", "prefix_group", "prefix_tokens", "priority", "max_tokens")
    found = requests_of(
        columns["arrive_s"],
        columns["input_tokens"],
        columns["output_tokens"],
        grouping=Grouping(**{name: columns[name] for name in groups}),
    )
    return ints(order), found


def served(requests: Requests) -> tuple[Requests, int]:
    """The requests with at least one input and one output token, and how many had not."""
    is_served = (requests.input_tokens > 0) & (requests.output_tokens > 0)
    return requests.take(np.flatnonzero(is_served)), int(len(requests) - is_served.sum())


def _copy(requests: Requests, row: Ints, *, number: int, moved_s: float) -> Copy:
    """Copy 0 is the trace itself; others are shifted, and their conversations are their own."""
    if number == 0:
        return Copy(requests.take(row), row, number)
    start, span = float(requests.arrive_s[0]), _span_s(requests.arrive_s)
    arrive = start + (requests.arrive_s[row] - start + moved_s) % span
    order = np.argsort(arrive, kind="stable")
    moved = requests.take(row[order])
    offset = (int(requests.session.max(initial=NONE)) + 1) * number
    is_own = _is_private(moved)
    base = (int(requests.prefix_group.max(initial=NONE)) + 1) * number
    grouping = Grouping(
        session=np.where(moved.session == NONE, NONE, moved.session + offset),
        prefix_group=np.where(is_own, moved.prefix_group + base, moved.prefix_group),
        prefix_tokens=moved.prefix_tokens,
        priority=moved.priority,
        max_tokens=moved.max_tokens,
    )
    shifted = requests_of(
        floats(arrive[order]), moved.input_tokens, moved.output_tokens, grouping=grouping
    )
    return Copy(shifted, row[order], number)


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
    require_positive("scale", factor=factor, shift=shift_s)
    if not len(requests):
        raise one(InputError, "scale", "requests", "there are none", "give at least one")
    if len(requests) * factor > MAX_REQUESTS:
        what = f"{len(requests) * factor:.3g} requests"
        raise one(InputError, "scale", "factor", what, f"at most {MAX_REQUESTS:,}")


def scaled_blocks(blocks: PrefixBlocks, scaled: Scaled) -> PrefixBlocks:
    """Blocks of every request of the load; those of one copy are no other copy's.

    Assumption: a block that a hundredth of the requests begin with is the service's own (a system
    prompt, a tool's description), and copies have it in common; others are somebody's words.
    """
    n_each = np.diff(blocks.first)[scaled.row]
    first = np.concatenate([[0], np.cumsum(n_each)])
    place = np.repeat(blocks.first[scaled.row] - first[:-1], n_each) + np.arange(first[-1])
    number, copy = blocks.block[place], np.repeat(scaled.copy, n_each)
    own = number + copy * blocks.n_distinct
    mixed = np.where(_is_common(blocks)[number], number, own)
    return PrefixBlocks(
        n_block_tokens=blocks.n_block_tokens,
        first=ints(first),
        block=_dense(mixed),
        has_responses=blocks.has_responses,
    )


def _is_common(blocks: PrefixBlocks) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    n_requests = len(blocks.first) - 1
    used = np.bincount(blocks.block, minlength=blocks.n_distinct)
    return np.asarray(used >= max(LEAST_COMMON, COMMON_FRAC * n_requests), dtype=np.bool_)


def _dense(number: Ints) -> Ints:
    """The same numbers as 0, 1, 2 … in order of first use."""
    _, at, place = np.unique(number, return_index=True, return_inverse=True)
    rank = np.empty(len(at), dtype=np.int64)
    rank[np.argsort(at)] = np.arange(len(at))
    return ints(rank[place])

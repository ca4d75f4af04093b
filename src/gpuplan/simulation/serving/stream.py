"""A run that never ends: requests in blocks in, those that have passed out, in order of arrival.

The engines keep their state between blocks. What is in memory is what is in the fleet, and what
waits for an earlier request to end; a row is used again when its request has passed. The times
are those of one long run, bit for bit: engines stop at the last arrival of a block, and no step
that could see the next one is begun.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import EngineTotals, Outcome, RequestTimes, UseOverTime
from gpuplan.domain.traffic.stream import Requests, no_requests, requests_of
from gpuplan.errors import InputError, Problem, one
from gpuplan.simulation.serving.arrays import (
    ROUTERS,
    check_ended,
    engine_state,
    refusals_of,
    times_of,
    totals_of,
    use_of,
)
from gpuplan.simulation.serving.features import extra_of, has_features, with_features
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.runs import run_apart, run_routed
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.run import BIN_S, LONGEST_S, check_fleet
from gpuplan.simulation.serving.sglang import is_sglang

LEAST_ROWS = 1 << 16
N_BLOCK = 100_000
MAX_HELD = 1 << 22  # requests in the fleet; beyond, its queue has no end


class Passed(NamedTuple):
    """Requests that have left, in order of arrival, each with its times."""

    requests: Requests
    times: RequestTimes


class ServingStream:
    """Engines that are fed block by block."""

    def __init__(self, fleet: Fleet, *, bin_s: float = BIN_S, max_held: int = MAX_HELD) -> None:
        check_fleet(no_requests(), fleet)
        if not can_stream(fleet):
            fix = "run it in memory, or use --no-prefix-caching and --batching continuous"
            what = "with fixed batches, prefix caching, SGLang, stages, or ranks in lockstep"
            raise one(InputError, "simulate", "--stream", what, fix)
        self._fleet = fleet
        self._max_held = max_held
        rows = np.zeros((LEAST_ROWS, st.N_REQUEST), dtype=np.int64)
        self._sim: AnyEngines = engine_state(no_requests(), fleet, bin_s)._replace(request=rows)
        if has_features(fleet.limits):
            bare = with_features(
                self._sim, no_requests(), (fleet.limits,), blocks=None, seed=fleet.seed
            )
            self._sim = bare._replace(**_rows_of_features(LEAST_ROWS))
        self._sim.limit[:, st.IS_JUMPING] = 1
        self._arrive_s = np.zeros(LEAST_ROWS)
        self._is_refused = np.zeros(LEAST_ROWS, dtype=bool)
        self._observed = np.zeros((2, fleet.n_engines), dtype=np.int64)
        self._draws = np.random.default_rng(fleet.seed)
        self._first, self._next, self._n_accepted, self._last = 0, 0, 0, 0
        self._origin_s: float | None = None
        self._end = 0
        self.refused: dict[str, int] = {}

    @property
    def n_held(self) -> int:
        """Requests in memory: in the fleet, or waiting for an earlier one to end."""
        return self._next - self._first

    @property
    def is_full(self) -> bool:
        """The queue has outgrown what is worth holding: the fleet is overloaded."""
        return self.n_held > self._max_held

    @property
    def last_s(self) -> float:
        """Last arrival after the first."""
        return self._last / st.TICKS_PER_S

    @property
    def n_submitted(self) -> int:
        """Requests that were fed so far."""
        return self._next

    def feed(self, requests: Requests) -> Passed:
        """Take a block that follows the last; what has passed by its last arrival is returned."""
        if not len(requests):
            return self._passed()
        self._origin_s = float(requests.arrive_s[0]) if self._origin_s is None else self._origin_s
        arrive = _ticks(requests.arrive_s, self._origin_s)
        self._check(arrive)
        taken = refusals_of(requests, self._fleet.limits)
        for why, n in taken.reasons:
            self.refused[why] = self.refused.get(why, 0) + n
        if len(taken.accepted):
            self._widen_ring(int(requests.output_tokens[taken.accepted].max()))
        rows = self._take_rows(len(requests))
        self._fill(rows, requests, arrive)
        self._is_refused[rows] = True
        self._is_refused[rows[taken.accepted]] = False
        self._last = int(arrive[-1])
        self._advance(np.ascontiguousarray(rows[taken.accepted]), self._last)
        self._n_accepted += len(taken.accepted)
        return self._passed()

    def finish(self) -> Passed:
        """No more will come: everything is served to its end."""
        self._advance(np.zeros(0, dtype=np.int64), st.FOREVER)
        passed = self._passed()
        check_ended(self._sim, self.n_held)
        return passed

    def use(self) -> UseOverTime:
        """Utilization of the engines so far."""
        return use_of(self._sim, self._end)

    def totals(self) -> EngineTotals:
        """Sums over all engines so far."""
        # Streams have no prefix cache: nothing is looked up.
        return replace(totals_of(self._sim, self._end), n_asked_tokens=0, n_hit_tokens=0)

    def _check(self, arrive: Ints) -> None:
        problems = []
        if arrive[0] < self._last or np.any(np.diff(arrive) < 0):
            problems.append(Problem("arrivals", "fall", "sort the requests by time"))
        if arrive[-1] > LONGEST_S * st.TICKS_PER_S:
            days = f"{arrive[-1] / st.TICKS_PER_S / 86400:.4g} days"
            problems.append(Problem("arrivals", f"span {days}", "split them: at most 40 days"))
        if problems:
            raise InputError("simulate", problems)

    def _fill(self, rows: Ints, requests: Requests, arrive: Ints) -> None:
        records = np.zeros((len(rows), st.N_REQUEST), dtype=np.int64)
        records[:, st.ARRIVE] = arrive
        records[:, st.INPUT] = requests.input_tokens
        records[:, st.OUTPUT] = requests.output_tokens
        records[:, [st.START, st.FIRST, st.END, st.NEXT_WAITING]] = st.NONE
        self._sim.request[rows] = records
        self._arrive_s[rows] = requests.arrive_s
        if isinstance(self._sim, st.FeaturedEngines):
            is_late, n_before = bool(self._sim.limit[0, st.ENDS_BY_EOS]), self._next - len(rows)
            self._sim.extra[rows] = extra_of(requests, is_late=is_late, n_before=n_before)

    def _take_rows(self, n: int) -> Ints:
        """Rows for the next n requests: their number modulo the number of rows."""
        n_rows = len(self._arrive_s)
        while self.n_held + n > n_rows:
            n_rows *= 2
        if n_rows > len(self._arrive_s):
            self._widen_rows(n_rows)
        rows = np.arange(self._next, self._next + n) & (n_rows - 1)
        self._next += n
        return rows

    def _widen_rows(self, n_rows: int) -> None:
        """Move what is held to its rows in a larger table, and every mention of a row with it."""
        resident = np.arange(self._first, self._next)
        old, new = resident & (len(self._arrive_s) - 1), resident & (n_rows - 1)
        moved = np.full(len(self._arrive_s), st.NONE, dtype=np.int64)
        moved[old] = new
        request = np.zeros((n_rows, st.N_REQUEST), dtype=np.int64)
        request[new] = self._sim.request[old]
        request[new, st.NEXT_WAITING] = _mapped(request[new, st.NEXT_WAITING], moved)
        slot, scalar = self._sim.slot, self._sim.scalar
        slot[:, :, st.ID] = _mapped(slot[:, :, st.ID], moved)
        for column in (st.WAIT_HEAD, st.WAIT_TAIL):
            scalar[:, column] = _mapped(scalar[:, column], moved)
        arrive_s, is_refused = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
        arrive_s[new], is_refused[new] = self._arrive_s[old], self._is_refused[old]
        self._arrive_s, self._is_refused = arrive_s, is_refused
        self._sim = self._sim._replace(request=request)
        if isinstance(self._sim, st.FeaturedEngines):
            scalar[:, st.READY] = _mapped(scalar[:, st.READY], moved)
            more = _rows_of_features(n_rows)
            more["extra"][new] = self._sim.extra[old]
            more["extra"][new, st.CHILD] = _mapped(more["extra"][new, st.CHILD], moved)
            self._sim = self._sim._replace(**more)

    def _widen_ring(self, longest: int) -> None:
        """Room for a response this long among the finishes to come."""
        n_ring = 1 << int(longest + 1).bit_length()
        old = self._sim.ring
        if n_ring <= old.shape[1]:
            return
        ring = np.full((old.shape[0], n_ring), st.NONE, dtype=np.int64)
        word = np.zeros((old.shape[0], n_ring >> st.WORD_BITS), dtype=np.int64)
        for r, at in zip(*np.nonzero(old >= 0), strict=True):
            after = int(self._sim.scalar[r, st.STEP]) + 1
            to = (after + ((int(at) - after) & (old.shape[1] - 1))) & (n_ring - 1)
            ring[r, to] = old[r, at]
            word[r, to >> st.WORD_BITS] |= 1 << (to & st.WORD_MASK)
            v = int(old[r, at])
            while v >= 0:
                self._sim.slot[r, v, st.FINISH] = to
                v = int(self._sim.slot[r, v, st.PEER_AFTER])
        self._sim = self._sim._replace(ring=ring, word=word)

    def _advance(self, accepted: Ints, until: int) -> None:
        self._sim.limit[:, st.LAST_INSTANT] = until
        if self._fleet.router == "round_robin":
            run_apart(self._sim, accepted, self._n_accepted)
            return
        pairs = self._draws.integers(0, self._fleet.n_engines, size=(len(accepted), 2))
        run_routed(self._sim, accepted, pairs, ROUTERS[self._fleet.router], self._observed)

    def _passed(self) -> Passed:
        """What has left and has nobody before it that has not."""
        rows = np.arange(self._first, self._next) & (len(self._arrive_s) - 1)
        is_done = (self._sim.request[rows, st.END] >= 0) | self._is_refused[rows]
        is_done &= ~np.isin(rows, _leaving(self._sim))
        n = len(rows) if is_done.all() else int(np.argmin(is_done))
        rows = rows[:n]
        records = self._sim.request[rows]
        self._first += n
        self._end = max(self._end, int(records[:, st.END].max(initial=0)))
        return Passed(
            requests_of(self._arrive_s[rows], records[:, st.INPUT], records[:, st.OUTPUT]),
            times_of(records, self._fleet.limits.start_s)[0],
        )


def can_stream(fleet: Fleet) -> bool:
    """Fixed batches, lockstep, and a cache that knows all text that came, need the whole run."""
    is_alone = fleet.batching is None and fleet.lockstep is None and not is_sglang(fleet.limits)
    is_alone = is_alone and fleet.decode is None and not fleet.limits.groups
    is_alone = is_alone and fleet.limits.admission.blocks.hybrid is None
    return is_alone and not fleet.limits.caches_prefixes and fleet.limits.admission.n_stages == 1


def _leaving(sim: AnyEngines) -> Ints:
    """Rows whose requests have ended and still hold their slots."""
    is_held = np.isin(sim.slot[:, :, st.DONE], (st.LEAVING, st.LEAVING_ROW))
    is_held[sim.scalar[:, st.N_LEAVING] == 0] = False
    resident: Ints = sim.slot[:, :, st.ID][is_held]
    return resident


def _rows_of_features(n_rows: int) -> dict[str, Any]:
    """Columns that go with the rows of requests; nothing is known of their text."""
    return {
        "extra": np.zeros((n_rows, st.N_EXTRA), dtype=np.int64),
        "path_first": np.zeros(n_rows + 1, dtype=np.int64),
    }


def in_blocks(
    requests: Requests, fleet: Fleet, *, bin_s: float = BIN_S, on_progress: Callable[[int], None]
) -> Outcome:
    """As `simulate_serving`, bit for bit, reporting how many requests have been taken."""
    check_fleet(requests, fleet)
    stream = ServingStream(fleet, bin_s=bin_s)
    parts = []
    for first in range(0, len(requests), N_BLOCK):
        last = min(first + N_BLOCK, len(requests))
        parts.append(stream.feed(requests.take(np.arange(first, last))).times)
        on_progress(last)
    parts.append(stream.finish().times)
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in RequestTimes.__dataclass_fields__
        if getattr(parts[0], name) is not None
    }
    for column in columns.values():
        column.flags.writeable = False
    return Outcome(
        requests=requests,
        times=RequestTimes(**columns),
        use=stream.use(),
        totals=stream.totals(),
        n_engines=fleet.n_engines,
        refused=tuple(stream.refused.items()),
    )


def _ticks(arrive_s: Floats, origin_s: float) -> Ints:
    if not np.all(np.isfinite(arrive_s)):
        raise one(InputError, "simulate", "arrivals", "one is not finite", "fix the times")
    ticks: Ints = np.rint((arrive_s - origin_s) * st.TICKS_PER_S).astype(np.int64)
    return ticks


def _mapped(values: Ints, moved: Ints) -> Ints:
    mapped: Ints = np.where(values >= 0, moved[np.maximum(values, 0)], values)
    return mapped

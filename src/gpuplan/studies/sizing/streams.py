"""Loads that all candidates of a workload meet: the same draws at any rate or number of users.

Open loop: arrivals of a unit rate, stretched to the load. Closed loop: users who ask again when
they are answered, so many as the load stands for. Two fleets differ by merit, not by luck.
"""

from dataclasses import replace
from functools import cache
from math import ceil
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.slo import is_growing
from gpuplan.demand.generate import requests_for
from gpuplan.demand.lengths import within_context
from gpuplan.demand.statistics import peak_hour
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.scenario.demand import Arrivals, RequestShape
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import ClosedLoop, Requests, alike
from gpuplan.studies.inference.closed_loop import closed_outcome
from gpuplan.studies.inference.deployment import EvaluatedDeployment
from gpuplan.studies.inference.prefix import fresh_requests
from gpuplan.studies.replay.closed_loop import Users, users_loop
from gpuplan.studies.replay.marks import with_adapters
from gpuplan.studies.replay.routed import routed_outcome
from gpuplan.units import HOUR

WARMUP_FRAC = 0.2
COOLDOWN_FRAC = 0.05  # the last requests meet a fleet that runs empty
# Times that all in flight are replaced in one run, at twice their idle time: of arrivals as even
# as chance makes them, and of bursts, which come and go more slowly.
N_TURNOVERS, N_BURST_TURNOVERS = 16, 30
STEP_RATIO = 2**0.5  # between the numbers of requests that runs have
# Replicas that are run for as many and more, up to the next: fewer share a load a little worse.
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
LONGEST_S = 30 * 86400.0
LEAST_REQUESTS = 500  # at fewer in the longest time nobody meets another
MANY_REQUESTS = 400_000
NEXT_SEED = 7919  # between draws
# Replicas of a closed loop that are run: the router keeps what is outstanding even, so a few
# speak for all. Where users think, chance moves a little more of them to one than to another.
LOOP_POOL, THINKING_POOL = 1, 2
# Of disaggregated groups: every prompt may go to any of their prefill engines.
GROUPS_POOL = 8
LOOP_TURNOVERS = 12  # requests of each user, at least: they begin spread over a cycle
BIN_S = 60.0


class Load(NamedTuple):
    """What one run is given: requests per second, and by what all steps are slower."""

    requests_per_s: float
    slowness_ratio: float = 1.0
    draw: int = 0


class Played(NamedTuple):
    """A run, its measured requests in order of arrival, and how many replicas it is of."""

    outcome: Outcome
    rows: Ints
    n_replicas: int
    is_overloaded: bool


class RequestStreams:
    """Requests of a unit rate, by how many are needed and which draw."""

    def __init__(
        self,
        arrivals: Arrivals,
        shape: RequestShape,
        seed: int,
        *,
        recorded: Requests | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._arrivals = replace(
            arrivals, peak_requests_per_s=1.0, mean_requests_per_s=1.0, hourly_profile=(), steps=()
        )
        self._shape, self._seed = shape, seed
        self._recorded, self._max_tokens = recorded, max_tokens
        self._base = cache(self._drawn)

    def n_requests(self, in_flight: float, *, least: int) -> int:
        """Requests of a run that replaces all in flight often enough."""
        is_even = self._recorded is None and self._arrivals.burstiness_ratio <= 1.0
        wanted = (N_TURNOVERS if is_even else N_BURST_TURNOVERS) * in_flight
        n = float(least)
        while n < wanted and n < MANY_REQUESTS:
            n *= STEP_RATIO
        return round(n)

    def is_beyond(self, of: EvaluatedDeployment, load: Load, n_replicas: int) -> bool:
        """Never known before a run."""
        return False

    def part(self, load: Load, n_replicas: int) -> tuple[Load, int]:
        """All of it: more replicas share a load better than fewer."""
        return load, n_replicas

    def spokesmen(self, n_replicas: int) -> int:
        """Replicas whose latencies at a load speak for those of so many."""
        return max((n for n in SIZES if n <= n_replicas), default=1)

    def whole(self, each: Floats, n_replicas: int) -> Floats:
        """Loads of a replica that can be: any."""
        return each

    def played(self, of: EvaluatedDeployment, load: Load, n_replicas: int, *, n: int) -> Played:
        """The load on so many replicas. Slower steps are a slower clock: more come in a step."""
        requests = self.at(load.requests_per_s * load.slowness_ratio, n, draw=load.draw)
        # One replica has nothing to route, but the same kernel serves it, loaded already.
        outcome = routed_outcome(requests, of.fleet(n_replicas))
        grows = is_growing(requests.arrive_s, requests.arrive_s + outcome.times.e2e_s)
        n_here = len(requests)
        first, last = int(WARMUP_FRAC * n_here), max(1, int((1.0 - COOLDOWN_FRAC) * n_here))
        return Played(outcome, np.arange(first, last, dtype=np.int64), n_replicas, grows)

    def at(self, requests_per_s: float, n_requests: int, *, draw: int = 0) -> Requests:
        """About so many requests without cached tokens; fewer where they would come too slowly."""
        while n_requests > LEAST_REQUESTS and n_requests > requests_per_s * LONGEST_S:
            n_requests //= 2
        base = self._base(n_requests, draw)
        rate = max(requests_per_s, n_requests / LONGEST_S)
        return replace(base, arrive_s=floats(base.arrive_s / rate))

    def _fresh(self, drawn: Requests) -> Requests:
        """Prompts without what is found in the cache, as they are timed and not as they share."""
        bare = alike(drawn, drawn.arrive_s)
        bare = replace(bare, output_tokens=ints(np.maximum(1, drawn.output_tokens)))
        bare = with_adapters(bare, self._shape.adapters, seed=self._seed)
        bare = within_context(bare, self._max_tokens)
        return fresh_requests(bare, self._shape.prefix_hit_frac.mid)

    @property
    def recorded(self) -> Requests | None:
        """The trace as it is, at its own rate; None: arrivals are drawn."""
        return None if self._recorded is None else self._fresh(self._recorded)

    def _drawn(self, n_requests: int, draw: int) -> Requests:
        seed = self._seed + NEXT_SEED * draw
        if self._recorded is not None:
            return self._fresh(busiest_hour(self._recorded, n_requests, seed))
        n_s = float(n_requests)
        drawn = requests_for(self._arrivals, self._shape, duration_s=n_s, seed=seed)
        # As many came as chance would have it: the clock makes them one a unit of time.
        arrive = drawn.arrive_s * (len(drawn) / n_s)
        return self._fresh(alike(drawn, arrive))


def busiest_hour(recorded: Requests, n_requests: int, seed: int) -> Requests:
    """The busiest hour of a trace at a unit rate, repeated, each time turned by a random shift."""
    start, rate = peak_hour(recorded.arrive_s)
    inside = (recorded.arrive_s >= start) & (recorded.arrive_s < start + HOUR)
    hour = recorded.take(np.flatnonzero(inside))
    # In units of the mean gap, so that one request comes in one unit of time.
    at = (hour.arrive_s - start) * rate
    rng = np.random.default_rng(seed)
    n_turns = -(-n_requests // len(hour))
    turns = [(at + rng.uniform(0, len(hour))) % len(hour) for _ in range(n_turns)]
    arrive = np.concatenate([turn + k * len(hour) for k, turn in enumerate(turns)])
    order = np.argsort(arrive, kind="stable")
    row = np.tile(np.arange(len(hour)), n_turns)[order]
    return alike(hour.take(row), arrive[order])


class UserStreams:
    """Users of a closed loop, so many as a rate stands for: N = X (R + Z) at the SLOs' R."""

    recorded: Requests | None = None

    def __init__(self, users: Users, n_users: float, seed: int, *, waits: bool) -> None:
        self._users, self._seed = users, seed
        self.peak_per_s = n_users / users.cycle_s  # the rate that all users stand for
        self._waits = waits  # an SLO limits how long a request may wait for room
        self._n_pool = THINKING_POOL if users.think_s else LOOP_POOL
        self._loop = cache(self._drawn)

    def of_groups(self) -> "UserStreams":
        """The same users before groups of engines that share what comes."""
        found = UserStreams(
            self._users, self.peak_per_s * self._users.cycle_s, self._seed, waits=self._waits
        )
        found._n_pool = GROUPS_POOL
        return found

    def n_requests(self, in_flight: float, *, least: int) -> int:
        """Requests of a run: a loop holds itself near its mean, so fewer say as much."""
        return least // 3

    def n_users(self, requests_per_s: float) -> float:
        """Users that this rate stands for."""
        return requests_per_s * self._users.cycle_s

    def is_beyond(self, of: EvaluatedDeployment, load: Load, n_replicas: int) -> bool:
        """More are in flight than can run, even if as many users think as ever can."""
        if self._waits:
            return False
        think_s = self._users.think_s / load.slowness_ratio
        in_flight = self.n_users(load.requests_per_s) / n_replicas - of.capacity_per_s() * think_s
        return in_flight > of.most_running

    def part(self, load: Load, n_replicas: int) -> tuple[Load, int]:
        """As many users and replicas as speak for all."""
        n_run = min(n_replicas, self._n_pool)
        # The fullest replicas: a share of the requests meets them that no percentile leaves out.
        n_users = max(1, ceil(self.n_users(load.requests_per_s) * n_run / n_replicas - 1e-6))
        return load._replace(requests_per_s=n_users / self._users.cycle_s), n_run

    def spokesmen(self, n_replicas: int) -> int:
        """Replicas whose latencies at a load speak for those of so many."""
        return self.part(Load(0.0), n_replicas)[1]

    def whole(self, each: Floats, n_replicas: int) -> Floats:
        """Loads of a replica that can be: the users of those that are run are whole."""
        ratio = self._users.cycle_s * self.spokesmen(n_replicas)
        return floats(np.floor(each * ratio + 1e-6) / ratio)

    def played(self, of: EvaluatedDeployment, load: Load, n_replicas: int, *, n: int) -> Played:
        """The users on so many replicas, or the part that speaks for all.

        Slower steps are a slower clock: as many users, who think for fewer of its ticks.
        """
        load, n_run = self.part(load, n_replicas)
        n_users = round(self.n_users(load.requests_per_s))
        loop = self._loop(n_users, max(LOOP_TURNOVERS, ceil(n / n_users)), load.draw)
        if load.slowness_ratio != 1.0:
            loop = replace(loop, think_s=loop.think_s / load.slowness_ratio)
        outcome = closed_outcome(loop, of.fleet(n_run), bin_s=BIN_S)
        rows = _while_all_ask(outcome.requests)
        return Played(outcome, rows, n_run, not self._waits and _is_full(of, outcome, rows))

    def _drawn(self, n_users: int, n_each: int, draw: int) -> ClosedLoop:
        return users_loop(self._users, n_users, n_each, seed=self._seed + NEXT_SEED * draw)


def _while_all_ask(requests: Requests) -> Ints:
    """Requests after the warm-up and before the first user has asked for the last time."""
    last_s = np.full(int(requests.session.max()) + 1, 0.0)
    np.maximum.at(last_s, requests.session, requests.arrive_s)
    end_s = float(last_s.min())
    first, last = np.searchsorted(requests.arrive_s, [WARMUP_FRAC * end_s, end_s])
    return np.arange(min(first, max(0, last - 1)), max(1, last), dtype=np.int64)


def _is_full(of: EvaluatedDeployment, outcome: Outcome, rows: Ints) -> bool:
    """More is in flight on a replica than it can run: some always wait for others to end."""
    times, at = outcome.times, outcome.requests.arrive_s[rows]
    span_s = max(float(at[-1] - at[0]), 1e-12)
    in_flight = (len(rows) - 1) / span_s * float(times.e2e_s[rows].mean())
    return in_flight > of.most_running * outcome.n_engines / of.n_engines

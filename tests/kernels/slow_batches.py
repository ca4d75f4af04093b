"""A slow batcher, instant by instant: the rules again, written without the kernel's short cuts."""

from collections.abc import Callable
from dataclasses import dataclass, field

Rows = list[int]
BatchTime = Callable[[Rows], tuple[int, int]]  # picoseconds to the first tokens and to the end
Fits = Callable[[Rows], bool]


@dataclass
class Server:
    """One server: who waits, who runs, until when."""

    waiting: Rows = field(default_factory=list)
    running: Rows = field(default_factory=list)
    until: int = 0


@dataclass
class Rules:
    max_batch: int
    delay: int | None
    preferred: tuple[int, ...]
    router: str
    n_servers: int


class SlowBatcher:
    """Every instant at which anything can happen is looked at."""

    def __init__(self, arrive: list[int], rules: Rules, batch_time: BatchTime, fits: Fits) -> None:
        self.arrive, self.rules, self.batch_time, self.fits = arrive, rules, batch_time, fits
        self.servers = [Server() for _ in range(rules.n_servers)]
        self.start: dict[int, int] = {}
        self.first: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.batches: list[Rows] = []

    def run(self) -> None:
        instants = set(self.arrive)
        coming = list(range(len(self.arrive)))
        while instants:
            now = min(instants)
            instants.remove(now)
            for server in self.servers:
                if server.running and server.until <= now:
                    server.running = []
            while coming and self.arrive[coming[0]] == now:
                self._route(coming.pop(0))
            for server in self.servers:
                instants |= self._look(server, now, is_last=not coming)

    def _route(self, i: int) -> None:
        if self.rules.router == "round_robin":
            server = self.servers[i % len(self.servers)]
        else:
            server = min(self.servers, key=lambda s: len(s.waiting) + len(s.running))
        server.waiting.append(i)

    def _look(self, server: Server, now: int, *, is_last: bool) -> set[int]:
        if server.running or not server.waiting:
            return set()
        n = self._taken(server, now, is_last=is_last)
        if n == 0:
            due = self.arrive[server.waiting[0]] + (self.rules.delay or 0)
            return {due} if self.rules.delay is not None and due > now else set()
        while not self.fits(server.waiting[:n]):
            n -= 1
        members, server.waiting = server.waiting[:n], server.waiting[n:]
        first, last = self.batch_time(members)
        for i in members:
            self.start[i], self.first[i], self.end[i] = now, now + first, now + last
        server.running, server.until = members, now + last
        self.batches.append(members)
        return {server.until}

    def _taken(self, server: Server, now: int, *, is_last: bool) -> int:
        rules, n = self.rules, min(len(server.waiting), self.rules.max_batch)
        age = now - self.arrive[server.waiting[0]]
        if is_last and rules.delay is None:
            return n
        if rules.delay and age >= rules.delay:
            return n
        filled = [size for size in rules.preferred or (rules.max_batch,) if size <= n]
        if filled:
            return max(filled)
        return n if rules.delay == 0 else 0

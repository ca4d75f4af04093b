"""A slow scheduler in plain Python, written from the rules alone: lists, sorts, no shortcuts.

It reads the nouns, not the kernel's arrays, and looks at everything anew at every instant. Times
of failures are handed in, since they are drawn.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs, column

NEVER = math.inf
GANG_ORDERS = ("fair", "drf", "kueue")


@dataclass(eq=False)
class Job:
    index: int
    arrive: float
    work: float
    gpus: int
    least: int
    most: int
    team: int
    pools: list[int]
    limit: float
    priority: int = 0
    deadline: float = NEVER
    share: int = 0
    profile: str = ""
    cpu: float = 0.0
    ram: float = 0.0
    level: int = 0
    checkpoint: float = 0.0
    restart: float = 0.0
    curve: list[float] | None = None
    is_service: bool = False
    is_fixed: bool = False
    left: float = 0.0
    began: float = 0.0
    pause: float = 0.0
    speed: float = 1.0
    end: float = NEVER
    limit_end: float = NEVER
    first: float = math.nan
    finished: float = math.nan
    starts: int = 0
    preempted: int = 0
    failed: int = 0
    held: int = 0
    held_time: float = 0.0
    lost: float = 0.0
    pool: int = -1
    places: list[tuple[int, int]] = field(default_factory=list)
    slot: dict | None = None
    slices: set[int] = field(default_factory=set)
    key: float = 0.0

    def units(self, gpus: int) -> int:
        return self.share or gpus * 1000

    def limit_left(self) -> float:
        return max(0.0, self.limit - (self.work - self.left))

    def speed_of(self, gpus: int, here: float) -> float:
        return here if self.curve is None else here * self.curve[gpus] / self.curve[self.gpus]

    def done(self, now: float) -> float:
        return max(0.0, now - self.began - self.pause) * self.speed


@dataclass(eq=False)
class Node:
    pool: int
    size: int
    free: int
    cpu: float
    ram: float
    rack: int
    zone: int
    down: int = 0

    @property
    def usable(self) -> int:
        return 0 if self.down else self.free


class Oracle:
    """One run; `conserve` is called after every instant."""

    def __init__(  # noqa: PLR0915
        self, cluster: Cluster, jobs: Jobs, events, until: float, conserve=None
    ):
        self.cluster, self.policy = cluster, cluster.policy
        self.conserve = conserve or (lambda _: None)
        self.events = sorted(events, key=lambda e: (e[0], e[1] != "returns", e[2]))
        self.nodes = [
            Node(
                p,
                g.n_accelerators_per_node,
                g.n_accelerators_per_node,
                math.inf if g.n_cpus is None else g.n_cpus * 1000,
                math.inf if g.ram_bytes is None else g.ram_bytes / 2**20,
                0 if g.n_nodes_per_rack is None else i // g.n_nodes_per_rack,
                0
                if g.n_nodes_per_rack is None or g.n_racks_per_zone is None
                else i // g.n_nodes_per_rack // g.n_racks_per_zone,
            )
            for p, g in enumerate(cluster.groups)
            for i in range(g.n_nodes)
        ]
        self.flavor = [g.accelerator for g in cluster.groups]
        self.used = {(t, f): 0 for t in range(len(cluster.teams)) for f in set(self.flavor)}
        self.quota = {}
        for t, team in enumerate(cluster.teams):
            for f in set(self.flavor):
                own = [q for q in team.quotas if q.accelerator == f]
                if not team.quotas:
                    nominal = math.inf if team.cohort is None else 0
                    self.quota[t, f] = (nominal, math.inf, math.inf)
                elif own:
                    borrow = math.inf if own[0].n_borrow is None else own[0].n_borrow * 1000
                    lend = math.inf if own[0].n_lend is None else own[0].n_lend * 1000
                    self.quota[t, f] = (own[0].n_accelerators * 1000, borrow, lend)
                else:
                    self.quota[t, f] = (0, math.inf, math.inf)
        self.slots: list[dict | None] = []
        self.running: list[Job] = []
        self.queue: list[Job] = []
        self.cloud: list[Job] = []
        self.usage = [0.0] * len(cluster.teams)
        self.usage_at = [0.0] * len(cluster.teams)
        self.jobs = self._read(jobs)
        services = self._services(until, jobs.week_s)
        able = [j for j in self.jobs if self._could_ever(j)]
        self.n_unfit = len(self.jobs) - len(able)
        self.all = sorted(able + services, key=lambda j: (j.arrive, j.is_service))
        for i, job in enumerate(self.all):
            job.index = i
            job.left = job.work
        self.now, self.shadow, self.extra = 0.0, 0.0, None

    def _read(self, jobs: Jobs) -> list[Job]:
        n, needs, terms, d = len(jobs), jobs.needs, jobs.terms, self.cluster.defaults
        acc, prof = column(needs.accelerator, n, -1), column(needs.profile, n, -1)
        share, curve = column(needs.share_frac, n, 1.0), column(terms.curve, n, -1)
        limit = column(terms.limit_s, n, np.nan)
        found = []
        for i in range(n):
            gpus, k = int(jobs.n_accelerators[i]), int(curve[i])
            name = needs.accelerator_names[int(acc[i])] if acc[i] >= 0 else None
            duration = float(jobs.duration_s[i])
            is_shared = share[i] < 1 or prof[i] >= 0
            pieces = 1 if is_shared else gpus
            found.append(
                Job(
                    index=i,
                    arrive=float(jobs.arrive_s[i]),
                    work=duration,
                    gpus=gpus,
                    least=gpus if k < 0 else min(gpus, int(column(terms.n_least, n, 1)[i])),
                    most=gpus if k < 0 else max(gpus, int(column(terms.n_most, n, 1)[i])),
                    team=int(jobs.team[i]),
                    pools=[p for p, f in enumerate(self.flavor) if name in (None, f)],
                    limit=duration * (d.limit_ratio or 1.0) if np.isnan(limit[i]) else limit[i],
                    priority=int(column(terms.priority, n, 0)[i]),
                    deadline=float(column(terms.deadline_s, n, 1e300)[i]),
                    share=round(share[i] * 1000) if is_shared else 0,
                    profile=needs.profile_names[int(prof[i])] if prof[i] >= 0 else "",
                    cpu=math.ceil(column(needs.n_cpus, n, 0)[i] * 1000 / pieces),
                    ram=math.ceil(column(needs.ram_bytes, n, 0)[i] / 2**20 / pieces),
                    level=int(column(needs.level, n, 0)[i]),
                    checkpoint=float(column(terms.checkpoint_s, n, d.checkpoint_s)[i]),
                    restart=float(column(terms.restart_s, n, d.restart_s)[i]),
                    curve=None if k < 0 else list(terms.curves[k]),
                    is_fixed=bool(column(terms.is_fixed, n, 0)[i]),
                )
            )
        return found

    def _could_ever(self, j: Job) -> bool:
        for p in j.pools:
            nominal, borrow, _ = self.quota[j.team, self.flavor[p]]
            reach = nominal + (borrow if self.cluster.teams[j.team].cohort else 0)
            mine = [n for n in self.nodes if n.pool == p]
            pieces = 1 if j.share else min(j.least, mine[0].size)
            is_hosted = j.cpu * pieces <= mine[0].cpu and j.ram * pieces <= mine[0].ram
            if is_hosted and j.least <= sum(n.size for n in mine) and j.units(j.least) <= reach:
                return True
        return False

    def _services(self, until: float, week_s: float) -> list[Job]:
        names, found = [t.name for t in self.cluster.teams], []
        for s in self.cluster.services:
            profile = s.replicas_by_hour
            for replica in range(max(profile)):
                t, on_since = 0.0, None
                while t < until:
                    is_on = profile[int((t + week_s) // 3600) % len(profile)] > replica
                    if is_on and on_since is None:
                        on_since = t
                    if not is_on and on_since is not None:
                        found.append(self._replica(s, names, on_since, t))
                        on_since = None
                    t = (math.floor((t + week_s) / 3600) + 1) * 3600 - week_s
                if on_since is not None:
                    found.append(self._replica(s, names, on_since, until))
        return found

    def _replica(self, s, names, begin: float, end: float) -> Job:
        g = s.n_accelerators_per_replica
        pools = [p for p, f in enumerate(self.flavor) if f == s.accelerator]
        team = names.index(s.team)
        return Job(0, begin, end - begin, g, g, g, team, pools, limit=end - begin, is_service=True)

    # --- quotas -------------------------------------------------------------------------------

    def quota_fits(self, j: Job, flavor: str, more: int) -> bool:
        if j.is_service:
            return True
        nominal, borrow, lend = self.quota[j.team, flavor]
        used = self.used[j.team, flavor]
        cohort = self.cluster.teams[j.team].cohort
        if cohort is None:
            return used + more <= nominal
        if used + more > nominal + borrow:
            return False
        pot = 0.0
        for t, team in enumerate(self.cluster.teams):
            if team.cohort == cohort:
                theirs, _, lends = self.quota[t, flavor]
                kept = max(0, theirs - lends)
                pot += theirs - kept - max(0, self.used[t, flavor] - kept)
        kept = max(0, nominal - lend)
        return more <= pot + kept - min(used, kept)

    # --- where a job fits ---------------------------------------------------------------------

    def _ok(self, j: Job, i: int, gpus: int, caps, taken: set[int]) -> bool:
        n = self.nodes[i]
        return (
            i not in taken
            and not n.down
            and (caps is None or caps[i] >= gpus)
            and n.cpu >= gpus * j.cpu
            and n.ram >= gpus * j.ram
        )

    def _one(self, j: Job, p: int, gpus: int, how) -> int | None:
        caps, taken, only = how
        fit = [
            i
            for i, n in enumerate(self.nodes)
            if n.pool == p and n.free >= gpus and self._ok(j, i, gpus, caps, taken) and only(n)
        ]
        sign = -1 if self.policy.placement == "spread" else 1
        return min(fit, key=lambda i: (sign * self.nodes[i].free, i), default=None)

    def _gang(self, j: Job, p: int, gpus: int, caps, only=lambda _: True):
        size = next(n.size for n in self.nodes if n.pool == p)
        pieces, taken = [], set()
        sizes = [size] * (gpus // size) + ([gpus % size] if gpus % size else [])
        for some in sizes:
            i = self._one(j, p, some, (caps, taken, only))
            if i is None:
                return None
            pieces.append((i, some))
            taken.add(i)
        return pieces

    def _scatter(self, j: Job, p: int, gpus: int, caps):
        pieces, taken, left = [], set(), gpus
        size = next(n.size for n in self.nodes if n.pool == p)
        for free in range(size, 0, -1):
            for i, n in enumerate(self.nodes):
                some = min(free, left)
                if n.pool == p and n.free == free and some and self._ok(j, i, some, caps, taken):
                    pieces.append((i, some))
                    taken.add(i)
                    left -= some
        return pieces if left == 0 else None

    def pieces(self, j: Job, p: int, gpus: int, caps=None):
        if sum(n.usable for n in self.nodes if n.pool == p) < gpus:
            return None
        size = next(n.size for n in self.nodes if n.pool == p)
        if self.policy.placement == "scatter" and j.level == 0:
            return self._scatter(j, p, gpus, caps)
        if j.level and gpus > size:
            name = "rack" if j.level == 1 else "zone"
            domains = sorted({getattr(n, name) for n in self.nodes if n.pool == p})
            for d in domains:
                found = self._gang(j, p, gpus, caps, lambda n, d=d: getattr(n, name) == d)
                if found:
                    return found
            return None
        return self._gang(j, p, gpus, caps)

    def _slice(self, p: int, profile: str, used: set[int]) -> set[int] | None:
        """Places of one more slice: where most other single slices stay possible."""
        rules = self.cluster.groups[p].slices
        ways = [
            {r.profile: set(range(s, s + r.n_places))}
            for r in rules
            for s in r.starts
            if s + r.n_places <= 8
        ]
        mine = [w[profile] for w in ways if profile in w and not w[profile] & used]
        every = [next(iter(w.values())) for w in ways]

        def open_after(places: set[int]) -> tuple[int, int]:
            return sum(not w & (used | places) for w in every), sum(1 << k for k in places)

        return max(mine, key=open_after, default=None)

    def share_in(self, j: Job, p: int, caps):
        """A slot of a shared GPU, or a node for a fresh one."""
        if j.profile and self._slice(p, j.profile, set()) is None:
            return None
        best = None
        for slot in self.slots if caps is None else []:
            if slot is None or not slot["tenants"] or slot["mig"] != bool(j.profile):
                continue
            n = self.nodes[slot["node"]]
            if n.pool != p or n.down or n.cpu < j.cpu or n.ram < j.ram:
                continue
            if j.profile:
                fits = self._slice(p, j.profile, slot["used"]) is not None
                full = len(slot["used"])
            else:
                fits, full = slot["milli"] + j.share <= 1000, slot["milli"]
            if fits and (best is None or full > best[0]):
                best = (full, slot)
        if best:
            return best[1]
        if not any(n.pool == p and n.usable for n in self.nodes):
            return None
        return self._one(j, p, 1, (caps, set(), lambda _: True))

    def room(self, j: Job, p: int, gpus: int, caps=None):
        return self.share_in(j, p, caps) if j.share else self.pieces(j, p, gpus, caps)

    # --- starting and stopping ----------------------------------------------------------------

    def _host(self, j: Job, i: int, times: int) -> None:
        self.nodes[i].cpu -= times * j.cpu
        self.nodes[i].ram -= times * j.ram

    def take(self, j: Job, p: int, gpus: int, found) -> None:
        if j.share:
            if isinstance(found, int):
                slot = {"node": found, "mig": bool(j.profile), "used": set(), "milli": 0}
                slot["tenants"] = []
                self.nodes[found].free -= 1
                at = self.slots.index(None) if None in self.slots else len(self.slots)
                self.slots[at : at + 1] = [slot]
                found = slot
            if j.profile:
                j.slices = self._slice(p, j.profile, found["used"])
                assert not j.slices & found["used"]
                found["used"] |= j.slices
            else:
                found["milli"] += j.share
            found["tenants"].append(j)
            j.slot = found
            self._host(j, found["node"], 1)
        else:
            for i, some in found:
                self.nodes[i].free -= some
                self._host(j, i, some)
            j.places = list(found)

    def give(self, j: Job) -> None:
        if j.slot is not None:
            slot, j.slot = j.slot, None
            slot["tenants"].remove(j)
            slot["used"] -= j.slices
            slot["milli"] -= 0 if j.profile else j.share
            self._host(j, slot["node"], -1)
            if not slot["tenants"]:
                self.nodes[slot["node"]].free += 1
                self.slots[self.slots.index(slot)] = None
        for i, some in j.places:
            self.nodes[i].free += some
            self._host(j, i, -some)
        j.places = []

    def set_ends(self, j: Job) -> None:
        if j.is_service:
            j.end = j.limit_end = j.arrive + j.work
        else:
            j.end = self.now + j.pause + j.left / j.speed
            j.limit_end = self.now + j.pause + j.limit_left() / j.speed

    def touch(self, t: int) -> None:
        gone, half = self.now - self.usage_at[t], self.policy.half_life_s
        rate = sum(j.units(j.held) for j in self.running if j.team == t) / 1000
        kept = math.exp(-math.log(2) * gone / half)
        self.usage[t] = self.usage[t] * kept + rate * half / math.log(2) * (1 - kept)
        self.usage_at[t] = self.now

    def start(self, j: Job, p: int, gpus: int, found) -> None:
        self.take(j, p, gpus, found)
        self.queue.remove(j)
        self.touch(j.team)
        j.pool, j.held, j.began = p, gpus, self.now
        j.pause = j.restart if j.starts else 0.0
        j.speed = j.speed_of(gpus, self.cluster.groups[p].speed_ratio or 1.0)
        if not j.starts:
            j.first = self.now
        j.starts += 1
        self.used[j.team, self.flavor[p]] += j.units(gpus)
        self.running.append(j)
        self.set_ends(j)

    def settle(self, j: Job, how: str) -> None:
        ran, gpus = self.now - j.began, j.units(j.held) / 1000
        done = j.done(self.now)
        kept = min(done, j.left)
        if how == "finished":
            kept = j.left
        elif how == "failed" or (how == "preempted" and not self.policy.saves_on_preemption):
            steps = math.floor(done / j.checkpoint) if j.checkpoint else 0
            kept = min(steps * j.checkpoint, j.left)
        j.held_time += ran * gpus
        if not j.is_service:
            j.lost += max(0.0, ran - kept / j.speed) * gpus
            j.left = max(0.0, j.left - kept)
        self.touch(j.team)
        self.used[j.team, self.flavor[j.pool]] -= j.units(j.held)
        self.running.remove(j)

    def stop(self, j: Job, how: str) -> None:
        self.settle(j, how)
        self.give(j)
        if how == "finished":
            j.finished = self.now
            return
        j.preempted += how == "preempted"
        j.failed += how == "failed"
        self.enqueue(j)

    def enqueue(self, j: Job) -> None:
        order = self.policy.order
        j.key = -j.priority
        if j.is_service or order == "fifo":
            j.key = j.arrive
        elif order == "shortest":
            j.key = j.limit_left()
        elif order == "edf":
            j.key = j.deadline
        self.queue.append(j)

    def waiting(self, team: int | None = None) -> list[Job]:
        mine = [j for j in self.queue if not j.is_service and team in (None, j.team)]
        return sorted(mine, key=lambda j: (j.key, j.index))

    def try_in(self, j: Job, p: int, is_backfill: bool):
        why = "few"
        for gpus in range(j.most, j.least - 1, -1):
            if not self.quota_fits(j, self.flavor[p], j.units(gpus)):
                why = "quota"
                continue
            pause = j.restart if j.starts else 0.0
            here = self.cluster.groups[p].speed_ratio or 1.0
            expected = self.now + pause + j.limit_left() / j.speed_of(gpus, here)
            capped = is_backfill and expected > self.shadow
            found = self.room(j, p, gpus, self.extra if capped else None)
            if found is not None:
                self.start(j, p, gpus, found)
                if capped:
                    for i, some in j.places or [(j.slot["node"], 1)]:
                        self.extra[i] -= some
                return None
            why = "few"
        return why

    def try_start(self, j: Job, is_backfill: bool = False):
        """None when it started; else why not: over quota in every pool, or no room."""
        reasons = []
        for p in j.pools:
            why = self.try_in(j, p, is_backfill)
            if why is None:
                return None
            reasons.append(why)
        return "quota" if set(reasons) == {"quota"} else "few"

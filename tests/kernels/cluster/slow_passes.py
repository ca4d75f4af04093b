"""The oracle's passes over its queues, its preemption and its clock."""

import math

from kernels.cluster.oracle import GANG_ORDERS, NEVER, Job, Oracle


class Scheduler(Oracle):
    """The oracle, complete."""

    # --- preemption ---------------------------------------------------------------------------

    def rank(self, v: Job) -> float:
        if self.policy.order == "shortest":
            return max(0.0, v.limit_left() - v.done(self.now))
        return v.deadline if self.policy.order == "edf" else -v.priority

    def may_stop(self, j: Job, v: Job, flavor: str) -> bool:  # noqa: PLR0911
        if v.is_service or v.is_fixed:
            return False
        if j.is_service:
            return True
        if self.policy.order != "kueue":
            return self.rank(v) > j.key
        if v.team == j.team:
            newer = v.priority == j.priority and v.arrive > j.arrive
            within = self.policy.within
            lower = within != "never" and v.priority < j.priority
            return lower or (within == "lower_or_newer_equal" and newer)
        teams = self.cluster.teams
        if teams[j.team].cohort is None or teams[j.team].cohort != teams[v.team].cohort:
            return False
        if self.used[j.team, flavor] + j.units(j.least) > self.quota[j.team, flavor][0]:
            return False
        if self.used[v.team, flavor] <= self.quota[v.team, flavor][0]:
            return False
        rule = self.policy.reclaim
        return rule == "any" or (rule == "lower_priority" and v.priority < j.priority)

    def _lift(self, v: Job):
        kept = (v.places, v.slot, v.slices)
        self.used[v.team, self.flavor[v.pool]] -= v.units(v.held)
        self.give(v)
        return kept

    def _drop(self, v: Job, kept) -> None:
        places, slot, slices = kept
        self.used[v.team, self.flavor[v.pool]] += v.units(v.held)
        for i, some in places:
            self.nodes[i].free -= some
            self._host(v, i, some)
        v.places = places
        if slot is not None:
            if not slot["tenants"]:
                self.nodes[slot["node"]].free -= 1
                at = self.slots.index(None)
                self.slots[at] = slot
            slot["tenants"].append(v)
            slot["used"] |= slices
            slot["milli"] += 0 if v.profile else v.share
            self._host(v, slot["node"], 1)
            v.slot = slot

    def fits(self, j: Job, p: int):
        if not self.quota_fits(j, self.flavor[p], j.units(j.least)):
            return None
        return self.room(j, p, j.least)

    def preempt(self, j: Job) -> bool:
        for p in j.pools:
            chosen: list[tuple[Job, object]] = []
            while self.fits(j, p) is None:
                gone = [v for v, _ in chosen]
                able = [
                    v
                    for v in self.running
                    if v.pool == p and v not in gone and self.may_stop(j, v, self.flavor[p])
                ]
                if not able:
                    break
                by_team = self.policy.order == "kueue" and not j.is_service
                v = max(
                    able,
                    key=lambda v: (
                        v.team != j.team if by_team else 0,
                        self.rank(v),
                        v.began,
                        v.index,
                    ),
                )
                chosen.append((v, self._lift(v)))
            is_enough = self.fits(j, p) is not None
            needed = list(chosen)
            if is_enough:
                for pair in chosen[-2::-1]:
                    self._drop(*pair)
                    if self.fits(j, p) is None:
                        self._lift(pair[0])
                    else:
                        needed.remove(pair)
            for pair in needed:
                self._drop(*pair)
            if is_enough:
                for v, _ in needed:
                    self.stop(v, "preempted")
                self.start(j, p, j.least, self.fits(j, p))
                return True
        return False

    # --- elastic jobs -------------------------------------------------------------------------

    def resize(self, j: Job, gpus: int, places) -> None:
        self.settle(j, "resized")
        j.places, j.held = places, gpus
        here = self.cluster.groups[j.pool].speed_ratio or 1.0
        j.began, j.pause, j.speed = self.now, j.restart, j.speed_of(gpus, here)
        self.used[j.team, self.flavor[j.pool]] += j.units(gpus)
        self.running.append(j)
        self.set_ends(j)

    def shrink_for(self, j: Job) -> bool:
        while True:
            able = [v for v in self.running if v.curve and v.held > v.least and v.pool in j.pools]
            if not able:
                return False
            v = max(able, key=lambda v: (v.began, v.index))
            drop, places = v.held - v.least, list(v.places)
            while drop:
                i, some = places.pop()
                less = min(some, drop)
                self.nodes[i].free += less
                self._host(v, i, -less)
                drop -= less
                if some > less:
                    places.append((i, some - less))
            self.resize(v, v.least, places)
            if self.try_start(j) is None:
                return True

    def grow(self) -> None:
        grown: set[int] = set()
        while True:
            order = sorted(self.running, key=lambda j: (j.limit_end, j.index))
            for j in order:
                able = j.curve and j.held < j.most and j.began < self.now and j.index not in grown
                if able and self._grow_one(j):
                    grown.add(j.index)
                    break
            else:
                return

    def _grow_one(self, j: Job) -> bool:
        added: list[tuple[int, int]] = []
        while j.held + len(added) < j.most:
            if not self.quota_fits(j, self.flavor[j.pool], (len(added) + 1) * 1000):
                break
            found = self.pieces(j, j.pool, 1)
            if found is None:
                break
            self.nodes[found[0][0]].free -= 1
            self._host(j, found[0][0], 1)
            added += found
        gpus = j.held + len(added)
        left = j.left - j.done(self.now)
        here = self.cluster.groups[j.pool].speed_ratio or 1.0
        if not added or not self.now + j.restart + left / j.speed_of(gpus, here) < j.end:
            for i, _ in added:
                self.nodes[i].free += 1
                self._host(j, i, -1)
            return False
        self.resize(j, gpus, j.places + added)
        return True

    # --- passes -------------------------------------------------------------------------------

    def reserve(self, j: Job) -> bool:
        """Walk through the ends to come until the job would fit; keep its place free."""
        plan = [n.usable if not n.down else -1 for n in self.nodes]
        tenants = {id(s): len(s["tenants"]) for s in self.slots if s}

        def leave(v: Job) -> None:
            for i, some in v.places:
                plan[i] += some if not self.nodes[i].down else 0
            if v.slot is not None:
                tenants[id(v.slot)] -= 1
                if not tenants[id(v.slot)] and not self.nodes[v.slot["node"]].down:
                    plan[v.slot["node"]] += 1

        ends = sorted(self.running, key=lambda v: (v.limit_end, v.index))
        for k, v in enumerate(ends):
            leave(v)
            for p in j.pools:
                held = self._planned(j, p, plan)
                if held is not None:
                    self.shadow = max(v.limit_end, self.now)
                    for w in ends[k + 1 :]:
                        if w.limit_end <= self.shadow:
                            leave(w)
                    held = self._planned(j, p, plan)
                    self.extra = [a - held.get(i, 0) for i, a in enumerate(plan)]
                    return True
        return False

    def _planned(self, j: Job, p: int, plan) -> dict[int, int] | None:
        mine = [i for i, n in enumerate(self.nodes) if n.pool == p]
        size, left = self.nodes[mine[0]].size, j.least
        if sum(max(0, plan[i]) for i in mine) < left:
            return None
        if self.policy.placement == "scatter" and j.level == 0:
            held = {}
            for i in mine:
                some = min(left, max(0, plan[i]))
                held[i], left = some, left - some
            return held
        whole = [i for i in mine if plan[i] == size][: left // size]
        if len(whole) < left // size:
            return None
        held = dict.fromkeys(whole, size)
        rest = left % size
        if rest:
            able = [i for i in mine if i not in held and plan[i] >= rest]
            if not able:
                return None
            held[min(able, key=lambda i: (plan[i], i))] = rest
        return held

    def queue_pass(self) -> None:
        at, is_blocked, is_reserved = 0, False, False
        while at < min(len(self.waiting()), self.policy.depth):
            j = self.waiting()[at]
            why = self.try_start(j, is_reserved)
            if why is None:
                continue
            if why != "quota" and not is_blocked:
                has_curves = any(x.curve for x in self.jobs)
                if (has_curves and self.shrink_for(j)) or (
                    self.policy.preempts and self.preempt(j)
                ):
                    at = 0
                    continue
                is_blocked = True
                if self.policy.blocking == "strict":
                    return
                if self.policy.blocking == "easy":
                    is_reserved = self.reserve(j)
            at += 1

    def conservative_pass(self) -> None:  # noqa: PLR0915
        """Every job in order: the earliest time at which enough GPUs stay free long enough."""
        bookings: list[tuple[float, float, int, int]] = []  # from, to, pool, GPUs
        at = tested = 0
        base = [sum(n.usable for n in self.nodes if n.pool == p) for p in range(len(self.flavor))]
        frees = [
            (max(v.limit_end, self.now + 1.0), v.pool, v.held) for v in self.running if not v.share
        ]
        ends = [max(v.limit_end, self.now + 1.0) for v in self.running]

        def free(p: int, t: float) -> int:
            there = base[p] + sum(g for e, q, g in frees if q == p and e <= t)
            return there - sum(g for a, b, q, g in bookings if q == p and a <= t < b)

        def starts(j: Job, p: int, lasts: float) -> list[float]:
            """Instants from which enough GPUs of the pool stay free for so long."""
            times = sorted(
                {self.now, *ends, *(b for _, b, _, _ in bookings)} | {a for a, _, _, _ in bookings}
            )
            lasts /= self.cluster.groups[p].speed_ratio or 1.0
            return [
                t for t in times if all(free(p, x) >= j.gpus for x in times if t <= x < t + lasts)
            ]

        def book(j: Job, p: int, t: float, lasts: float) -> None:
            here = self.cluster.groups[p].speed_ratio or 1.0
            bookings.append((t, t + lasts / here, p, j.gpus))

        while at < len(self.waiting()) and tested < self.policy.depth:
            tested += 1
            j = self.waiting()[at]
            lasts = max((j.restart if j.starts else 0.0) + j.limit_left(), 1.0)
            able = {p: starts(j, p, lasts) for p in j.pools}
            whys = []
            for p in j.pools:
                if self.now in able[p]:
                    whys.append(self.try_in(j, p, False))
                    if whys[-1] is None:
                        book(j, p, self.now, lasts)
                        break
            if None in whys:
                continue
            later = [(t, p) for p in j.pools for t in able[p] if t > self.now]
            if later and set(whys) != {"quota"}:
                t, p = min(later)
                book(j, p, t, lasts)
            at += 1

    def score(self, t: int) -> float:
        weight = self.cluster.teams[t].share_ratio
        if self.policy.order == "fair":
            self.touch(t)
            return self.usage[t] / weight
        mine = [j for j in self.running if j.team == t]
        groups = self.cluster.groups
        cpus = sum((g.n_cpus or 0) * g.n_nodes for g in groups) * 1000
        ram = sum((g.ram_bytes or 0) * g.n_nodes for g in groups) / 2**20
        times = [(j, 1 if j.share else j.held) for j in mine]
        shares = [sum(j.units(j.held) for j in mine) / (self.cluster.n_accelerators * 1000)]
        shares += [sum(j.cpu * k for j, k in times) / cpus] if cpus else []
        shares += [sum(j.ram * k for j, k in times) / ram] if ram else []
        return max(shares) / weight

    def share_pass(self) -> None:
        teams = range(len(self.cluster.teams))
        cursor, blocked = [0] * len(teams), [False] * len(teams)
        while True:
            able = [t for t in teams if not blocked[t] and cursor[t] < len(self.waiting(t))]
            if not able:
                return
            t = min(able, key=lambda t: (self.score(t), t))
            if self.try_start(self.waiting(t)[cursor[t]]) is not None:
                cursor[t] += 1
                blocked[t] = self.policy.blocking == "strict" or cursor[t] >= self.policy.depth

    def kueue_pass(self) -> None:
        teams = range(len(self.cluster.teams))
        cursor, blocked = [0] * len(teams), [False] * len(teams)

        def borrows(j: Job) -> bool:
            return all(
                self.used[j.team, f] + j.units(j.least) > self.quota[j.team, f][0]
                for f in (self.flavor[p] for p in j.pools)
            )

        while True:
            able = [t for t in teams if not blocked[t] and cursor[t] < len(self.waiting(t))]
            if not able:
                return
            borrowing = {t: borrows(self.waiting(t)[cursor[t]]) for t in able}
            while able:
                heads = {t: self.waiting(t)[cursor[t]] for t in able}
                ranks = {t: (borrowing[t], -j.priority, j.index) for t, j in heads.items()}
                t = min(able, key=ranks.__getitem__)
                able.remove(t)
                j = self.waiting(t)[cursor[t]]
                if self.try_start(j) is None or (self.policy.preempts and self.preempt(j)):
                    continue
                cursor[t] += 1
                blocked[t] = self.policy.blocking == "strict" or cursor[t] >= self.policy.depth

    def schedule(self) -> None:
        for j in sorted((j for j in self.queue if j.is_service), key=lambda j: (j.key, j.index)):
            if j.arrive + j.work <= self.now:
                self.queue.remove(j)
            elif self.try_start(j) is not None:
                self.preempt(j)
        if self.policy.order == "kueue":
            self.kueue_pass()
        elif self.policy.order in GANG_ORDERS:
            self.share_pass()
        elif self.policy.blocking == "conservative":
            self.conservative_pass()
        else:
            self.queue_pass()

    def burst(self, came: list[Job]) -> None:
        rule = self.cluster.burst
        if rule is None:
            return
        for j in reversed(came):
            if (
                sum(q.gpus for q in self.queue if not q.is_service)
                <= rule.above_queued_accelerators
            ):
                return
            used = sum(c.gpus for c in self.cloud)
            if j not in self.queue or j.share or j.is_service or j.is_fixed:
                continue
            if used + j.gpus <= rule.n_accelerators:
                self.queue.remove(j)
                self.cloud.append(j)
                j.first = self.now + rule.start_s
                j.end = j.first + j.left / rule.speed_ratio

    def _next(self) -> float:
        at = min([j.arrive for j in self.all], default=NEVER)
        at = min([at, *(j.end for j in self.running + self.cloud)])
        if self.events and not (at == NEVER and not self.queue):
            at = min(at, self.events[0][0])
        return at

    def run(self) -> "Scheduler":
        while (at := self._next()) < NEVER:
            self.now = at
            due = [j for j in self.running + self.cloud if j.end <= at]
            for j in sorted(due, key=lambda j: (j.end, j.index)):
                if j in self.cloud:
                    self.cloud.remove(j)
                    j.finished, j.left = at, 0.0
                else:
                    self.stop(j, "finished")
            while self.events and self.events[0][0] <= at:
                self._event(*self.events.pop(0)[1:])
            came = [j for j in self.all if j.arrive <= at]
            self.all = self.all[len(came) :]
            for j in came:
                self.enqueue(j)
            self.schedule()
            self.burst(came)
            if not self.queue and any(j.curve for j in self.jobs):
                self.grow()
            self.conserve(self)
        return self

    def _event(self, kind: str, i: int) -> None:
        node = self.nodes[i]
        if kind == "returns":
            node.down -= 1
            return
        node.down += 1
        order = sorted(self.running, key=lambda j: (j.limit_end, j.index))
        for j in order:
            if any(n == i for n, _ in j.places) or (j.slot and j.slot["node"] == i):
                self.stop(j, "failed" if kind == "fails" else "preempted")


def conserved(s: Scheduler) -> None:
    """At every instant: nothing is held twice, nothing is lost."""
    for i, node in enumerate(s.nodes):
        held = sum(k for j in s.running for n, k in j.places if n == i)
        shared = sum(slot is not None and slot["node"] == i for slot in s.slots)
        assert node.free + held + shared == node.size
        assert node.cpu >= 0
        assert node.ram >= 0
    for slot in filter(None, s.slots):
        assert slot["milli"] <= 1000
        if slot["mig"]:
            assert sum(len(j.slices) for j in slot["tenants"]) == len(slot["used"])
    used = dict.fromkeys(s.used, 0)
    for j in s.running:
        used[j.team, s.flavor[j.pool]] += j.units(j.held)
    assert used == s.used
    assert not math.isnan(s.now)

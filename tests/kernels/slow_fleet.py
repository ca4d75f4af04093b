"""An autoscaled fleet written down slowly, from its rules alone: the oracle of the fleet's kernels.

Replicas hold engines of `kernels.reference`, time is a float, and every rule is a plain loop over
everything. Only the draws of chance are handed in. Nothing here is shared with the package but
the nouns.
"""

import math
from dataclasses import dataclass, field

from gpuplan.domain.simulation.engine import StepTable
from gpuplan.domain.simulation.fleet import ElasticFleet, Pool
from kernels.reference import Engine, Request, StepTime, rules_of

NEVER = math.inf


def at(instant_s: float) -> float:
    """To the picosecond: what happens at the same instant must compare as equal."""
    return round(float(instant_s), 12)


@dataclass
class Replica:
    number: int
    pool: int
    engine: "TornEngine | None" = None
    status: str = "off"
    purpose: str = ""
    ready_at: float = NEVER
    fail_at: float = NEVER
    notice_at: float = NEVER
    kill_at: float = NEVER
    repair_at: float = NEVER
    step_end: float = NEVER
    is_marked: bool = False
    is_restarting: bool = False
    sent: list["Job"] = field(default_factory=list)
    link_free: float = 0.0
    n_drawn: dict[str, int] = field(default_factory=lambda: {"fail": 0, "notice": 0, "repair": 0})

    @property
    def outstanding(self) -> int:
        return len(self.engine.waiting) + len(self.engine.running) if self.engine else 0


@dataclass
class Job:
    number: int
    origin: float
    n_input: int
    n_output: int
    service: int
    keys: list[int]
    state: str = "to come"
    n_tries: int = 0
    n_sent_again: int = 0
    requested_at: float = 0.0
    deadline: float = NEVER
    stage: int = 0
    is_aborted: bool = False
    on: Replica | None = None
    request: Request | None = None
    first_s: float | None = None
    end_s: float | None = None


class TornEngine(Engine):
    """An engine whose steps have a beginning and an end, with time for mishaps in between."""

    def begin_step(self) -> float:
        """When the step that begins now will end."""
        self.scheduled = self.schedule()
        prefills = [r for r in self.running if r.number in self.scheduled and not r.is_decoding]
        decodes = [r for r in self.running if r.number in self.scheduled and r.is_decoding]
        chunks = [(self.scheduled[r.number], r) for r in prefills]
        pairs = sum(n * (r.n_computed + n / 2) for n, r in chunks)
        n_ended = sum(r.n_computed + n == r.n_tokens for n, r in chunks)
        contexts = [r.n_tokens for r in decodes]
        if not self.scheduled:
            return self.now_s
        n_prefill = sum(n for n, _ in chunks)
        return self.now_s + self.step_time_s(n_prefill, pairs, n_ended, contexts)

    def end_step(self, now_s: float) -> None:
        self.now_s = now_s
        for request in list(self.running):
            if request.number in self.scheduled:
                self.gain(request, self.scheduled[request.number])

    def remove(self, request: Request) -> None:
        """The request leaves between two steps."""
        if request in self.running:
            self.running.remove(request)
            self.free += request.blocks
        elif request in self.waiting:
            self.waiting.remove(request)


class SlowFleet:
    """Everything happens in `run`; `draw(which, replica, count)` is a standard exponential."""

    def __init__(self, fleet: ElasticFleet, jobs: list[Job], step_times, draw, pair) -> None:
        self.fleet, self.jobs, self.step_times = fleet, jobs, step_times
        self.draw, self.pair = draw, pair
        self.now = 0.0
        self.replicas: list[Replica] = []
        self.held: list[list[Job]] = [[] for _ in fleet.pools]
        self.turn = [0] * len(fleet.pools)
        self.n_sent = [0] * len(fleet.pools)
        self.desired = [pool.size.n_first for pool in fleet.pools]
        self.delayed: list[tuple[float, int]] = []
        self.owner: dict[int, Replica] = {}
        self.tick_at = [
            at(pool.scaler.interval_s) if pool.scaler else NEVER for pool in fleet.pools
        ]
        self.roll_at = [
            at(pool.restarts.first_s) if pool.restarts else NEVER for pool in fleet.pools
        ]
        self.last_up = [-NEVER] * len(fleet.pools)
        self.last_down = [-NEVER] * len(fleet.pools)
        self.recent: list[list[int]] = [[] for _ in fleet.pools]
        self.outages = sorted(
            (at(o.at_s), self._first(p) + o.replica, o.lasts_s)
            for p, pool in enumerate(fleet.pools)
            for o in (pool.failures.outages if pool.failures else ())
        )
        self.counts = dict.fromkeys(
            ("refusals", "timeouts", "retries", "resends", "broken", "failures", "reclaims",
             "handovers"), 0)  # fmt: skip
        for p, pool in enumerate(fleet.pools):
            for place in range(pool.size.n_slots):
                replica = Replica(len(self.replicas), p)
                self.replicas.append(replica)
                if place < pool.size.n_first:
                    self._clocks(replica)
                    self._fresh_engine(replica)
                    replica.status = "ready"

    def _first(self, p: int) -> int:
        return sum(pool.size.n_slots for pool in self.fleet.pools[:p])

    def of(self, p: int, *status: str) -> list[Replica]:
        return [r for r in self.replicas if r.pool == p and r.status in status]

    # ── replicas ────────────────────────────────────────────────────────────────────────────────

    def _fresh_engine(self, r: Replica) -> None:
        r.engine = self.engine_of(r.pool)
        r.engine.now_s = self.now
        r.step_end = NEVER

    def engine_of(self, p: int) -> TornEngine:
        limits = self.fleet.pools[p].limits
        rules = rules_of(limits)
        return TornEngine(rules, self.step_times[p])

    def _drawn(self, r: Replica, which: str, mean_s: float) -> float:
        count = r.n_drawn[which]
        r.n_drawn[which] += 1
        return at(self.draw(which, r.number, count) * mean_s)

    def _clocks(self, r: Replica) -> None:
        pool = self.fleet.pools[r.pool]
        if pool.failures and pool.failures.mtbf_s is not None:
            r.fail_at = at(self.now + self._drawn(r, "fail", pool.failures.mtbf_s))
        if pool.spot:
            r.notice_at = at(self.now + self._drawn(r, "notice", pool.spot.mean_s))

    def _clear(self, r: Replica) -> None:
        r.ready_at = r.fail_at = r.notice_at = r.kill_at = r.repair_at = NEVER

    def start(self, r: Replica, lasts_s: float) -> None:
        self._clear(r)
        self._fresh_engine(r)
        r.is_marked = False
        r.ready_at = at(self.now + lasts_s)
        self._clocks(r)
        r.status = "starting"

    def stop(self, r: Replica) -> None:
        self._clear(r)
        r.is_restarting = r.is_marked = False
        r.status = "off"

    def drain(self, r: Replica, purpose: str) -> None:
        pool = self.fleet.pools[r.pool]
        r.purpose = purpose
        lasts_s = pool.spot.notice_s if purpose == "return" else pool.drain_s
        if lasts_s is not None:
            r.kill_at = min(r.kill_at, at(self.now + lasts_s))
        r.status = "draining"
        if r.outstanding == 0:
            self.drained(r)

    def drained(self, r: Replica) -> None:
        if r.purpose == "leave":
            self.stop(r)
        elif r.purpose == "restart":
            self.start(r, self.fleet.pools[r.pool].start.warm_s)

    def roll_on(self, p: int) -> None:
        restarts = self.fleet.pools[p].restarts
        most = restarts.max_unavailable if restarts else 0
        for r in [r for r in self.replicas if r.pool == p]:
            if sum(x.is_restarting for x in self.replicas if x.pool == p) >= most:
                return
            if r.is_marked and r.status == "ready":
                r.is_marked, r.is_restarting = False, True
                self.drain(r, "restart")

    def take_back(self, r: Replica) -> list[Job]:
        sent = r.sent
        r.sent = []
        self._fresh_engine(r)
        return sent

    def send_all_again(self, sent: list[Job]) -> None:
        for job in sent:
            if job.is_aborted:
                self.time_out(job)
            elif job.end_s is None:
                self.counts["broken"] += 1
                self.reset(job)
                if job.n_sent_again >= self.fleet.router.max_resends:
                    job.state, job.deadline = "lost", NEVER
                    continue
                job.n_sent_again += 1
                self.counts["resends"] += 1
                self.route(job)

    def fail(self, r: Replica, lasts_s: float | None) -> None:
        failures = self.fleet.pools[r.pool].failures
        if lasts_s is None and failures.mttr_s is not None:
            lasts_s = failures.mttr_s
            if not failures.is_fixed_repair:
                lasts_s = self._drawn(r, "repair", failures.mttr_s)
        sent = self.take_back(r)
        self._clear(r)
        r.is_restarting = r.is_marked = False
        r.repair_at = NEVER if lasts_s is None else at(self.now + lasts_s)
        r.status = "failed"
        self.send_all_again(sent)
        self.roll_on(r.pool)

    def change(self, r: Replica) -> None:
        pool, now = self.fleet.pools[r.pool], self.now
        if r.ready_at == now:
            r.ready_at, r.is_restarting, r.status = NEVER, False, "ready"
            self.send_queued(r.pool)
            self.roll_on(r.pool)
        elif r.repair_at == now:
            if len(self.of(r.pool, "ready", "starting")) < self.desired[r.pool]:
                self.start(r, pool.start.total_s)
            else:
                self.stop(r)
        elif r.fail_at == now:
            self.counts["failures"] += 1
            self.fail(r, None)
        elif r.notice_at == now:
            self.take_notice(r, pool)
        elif r.purpose == "return":
            self.fail(r, pool.spot.away_s)
        else:
            sent = self.take_back(r)
            self.drained(r)
            self.send_all_again(sent)

    def take_notice(self, r: Replica, pool: Pool) -> None:
        r.notice_at = NEVER
        self.counts["reclaims"] += 1
        if r.status == "starting":
            self.fail(r, pool.spot.away_s)
        elif r.status == "draining" and r.purpose == "leave":
            r.kill_at = min(r.kill_at, at(self.now + pool.spot.notice_s))
        else:
            r.is_restarting = False
            self.drain(r, "return")
            self.roll_on(r.pool)

    # ── the scaler ──────────────────────────────────────────────────────────────────────────────

    def tick(self, p: int) -> None:
        pool, scaler = self.fleet.pools[p], self.fleet.pools[p].scaler
        self.tick_at[p] = at(self.tick_at[p] + scaler.interval_s)
        n_active = len(self.of(p, "ready", "starting"))
        wanted = self.wanted(p, n_active)
        n_window = 1 + int(scaler.down_window_s // scaler.interval_s)
        self.recent[p] = [*self.recent[p], wanted][-n_window:]
        kept = max(self.recent[p])
        self.desired[p] = n_active
        if wanted > n_active:
            self.desired[p] = wanted
            off = self.of(p, "off")[: wanted - n_active]
            if self.now - self.last_up[p] >= scaler.up_cooldown_s and off:
                for r in off:
                    self.start(r, pool.start.total_s)
                self.last_up[p] = self.now
        elif kept < n_active:
            self.desired[p] = kept
            if self.now - self.last_down[p] >= scaler.down_cooldown_s:
                for _ in range(n_active - kept):
                    self.shrink(p)
                self.last_down[p] = self.now

    def wanted(self, p: int, n_active: int) -> int:
        scaler, size = self.fleet.pools[p].scaler, self.fleet.pools[p].size
        mine = [r for r in self.replicas if r.pool == p and r.engine]
        demand = len(self.held[p]) + sum(
            len(r.engine.waiting) if scaler.metric == "queue" else r.outstanding for r in mine
        )
        ratio = demand / (scaler.target_requests * max(1, n_active))
        wanted = math.ceil(demand / scaler.target_requests)
        if n_active > 0 and abs(ratio - 1) <= scaler.tolerance_frac:
            wanted = n_active
        elif n_active > 0 and scaler.metric == "queue":
            wanted = max(wanted, n_active) if ratio > 1 else n_active - (demand == 0)
            is_asked = self.held[p] or any(r.outstanding for r in mine)
            wanted = max(wanted, int(bool(is_asked)))
        floor = max([size.n_least, *(f.n_least for f in scaler.floors)])
        return min(max(wanted, floor), size.n_most)

    def shrink(self, p: int) -> None:
        starting, ready = self.of(p, "starting"), self.of(p, "ready")
        if starting:
            self.stop(starting[-1])
        elif ready:
            self.drain(min(ready, key=lambda r: (r.outstanding, -r.number)), "leave")

    # ── the router ──────────────────────────────────────────────────────────────────────────────

    def least(self, p: int) -> Replica | None:
        return min(self.of(p, "ready"), key=lambda r: (r.outstanding, r.number), default=None)

    def choose_pool(self, job: Job) -> int:
        fleet = self.fleet
        if len(fleet.pools) == 1:
            return 0
        service = fleet.services[job.service]
        ranks = []
        for share in service.decode_pools if job.stage else service.pools:
            p = [pool.name for pool in fleet.pools].index(share.pool)
            limits = fleet.pools[p].limits
            if job.n_input + job.n_output - 1 > limits.n_blocks * limits.block_tokens:
                continue
            ready, least = self.of(p, "ready"), self.least(p)
            out = sum(r.outstanding for r in self.replicas if r.pool == p)
            rank = (out + len(self.held[p])) / (share.weight_ratio * max(1, len(ready)))
            if fleet.router.pool_rule == "share":
                rank = self.n_sent[p] / share.weight_ratio
            spill = min(s.spill_requests for x in fleet.services
                        for s in (*x.pools, *x.decode_pools) if s.pool == share.pool)  # fmt: skip
            if fleet.router.pool_rule == "order" and least and least.outstanding < spill:
                rank = -1.0
            ranks.append((not ready, rank, p))
        return min(ranks)[2]

    def choose(self, job: Job, p: int) -> Replica | None:
        router, pool = self.fleet.router, self.fleet.pools[p]
        most = pool.admission.max_outstanding or math.inf
        least, ready = self.least(p), self.of(p, "ready")
        if least is None or least.outstanding >= most:
            return None
        chosen = None
        if router.rule == "round_robin":
            chosen = ready[self.turn[p] % len(ready)]
            self.turn[p] += 1
        elif router.rule == "power_of_two":
            a, b = (ready[place] for place in self.pair(job.number, job.n_tries, len(ready)))
            chosen = min(a, b, key=lambda r: (r.outstanding, r.number))
        elif router.rule in ("session", "prefix_affinity"):
            chosen = self.keeper(job, p, least)
        return least if chosen is None or chosen.outstanding >= most else chosen

    def keeper(self, job: Job, p: int, least: Replica) -> Replica | None:
        router = self.fleet.router
        for key in reversed(job.keys):
            r = self.owner.get(key)
            if r is not None and r.pool == p and r.status == "ready":
                more = r.outstanding - least.outstanding
                is_far = more > router.guard_requests
                is_far = is_far and more > router.guard_ratio * least.outstanding
                return None if is_far and router.rule != "session" else r
        return None

    def send(self, job: Job, r: Replica) -> None:
        is_split = self.is_split(job) and job.stage == 0
        n_output = 1 if is_split else job.n_output
        job.request = self.request_of(job, n_output)
        if job.stage == 1:
            # Its keys and values have come with it: only the last prompt token is left to compute.
            job.request.n_computed = job.n_input - 1
        r.engine.waiting.append(job.request)
        r.sent.append(job)
        job.on, job.state = r, "served"
        self.n_sent[r.pool] += 1
        for key in job.keys if self.fleet.router.rule in ("session", "prefix_affinity") else ():
            self.owner[key] = r

    def request_of(self, job: Job, n_output: int) -> Request:
        return Request(job.number, self.now, job.n_input, n_output)

    def is_split(self, job: Job) -> bool:
        services = self.fleet.services
        return bool(services and services[job.service].decode_pools) and job.n_output > 1

    def reset(self, job: Job) -> None:
        job.stage, job.first_s, job.end_s, job.is_aborted, job.request = 0, None, None, False, None

    def route(self, job: Job) -> None:
        p = self.choose_pool(job)
        r = self.choose(job, p) if not self.held[p] else None
        most = self.fleet.pools[p].admission.max_held
        if r is not None:
            self.send(job, r)
        elif most is None or len(self.held[p]) < most or job.stage == 1:
            job.state = "waiting"
            self.held[p].append(job)
        else:
            self.counts["refusals"] += 1
            job.deadline = NEVER
            self.retry(job, self.now, "refused")

    def send_queued(self, p: int) -> None:
        while self.held[p]:
            r = self.choose(self.held[p][0], p)
            if r is None:
                return
            self.send(self.held[p].pop(0), r)

    # ── clients ─────────────────────────────────────────────────────────────────────────────────

    def retry(self, job: Job, since: float, otherwise: str) -> None:
        clients = self.fleet.clients
        if job.n_tries >= clients.max_retries:
            job.state, job.deadline = otherwise, NEVER
            return
        pause = min(clients.backoff_s * 2**job.n_tries, clients.max_backoff_s)
        job.n_tries += 1
        self.counts["retries"] += 1
        job.state = "delayed"
        self.delayed.append((max(at(since + pause), self.now), job.number))

    def time_out(self, job: Job) -> None:
        self.counts["timeouts"] += 1
        self.reset(job)
        self.retry(job, job.requested_at + self.fleet.clients.timeout_s, "timed out")

    def come(self, job: Job) -> None:
        if job.stage == 1:
            self.route(job)
            return
        job.requested_at = self.now
        self.route(job)
        if job.state in ("served", "waiting") and self.fleet.clients.timeout_s is not None:
            job.deadline = at(self.now + self.fleet.clients.timeout_s)

    def lose_patience(self, job: Job) -> None:
        job.deadline = NEVER
        if job.state == "served":
            if job.end_s is None and not (
                self.fleet.clients.is_first_token and job.first_s is not None
            ):
                job.is_aborted = True
        else:
            self.held = [[j for j in held if j is not job] for held in self.held]
            self.delayed = [entry for entry in self.delayed if entry[1] != job.number]
            self.time_out(job)

    def remove_aborted(self, r: Replica) -> None:
        if r.step_end != NEVER or not any(job.is_aborted for job in r.sent):
            return
        gone = [job for job in r.sent if job.is_aborted]
        r.sent = [job for job in r.sent if not job.is_aborted]
        for job in gone:
            r.engine.remove(job.request)
        # The last to be sent is the first to be noticed.
        for job in reversed(gone):
            self.time_out(job)

    # ── time ────────────────────────────────────────────────────────────────────────────────────

    def finish(self, r: Replica, job: Job) -> None:
        r.sent = [j for j in r.sent if j is not job]
        if self.is_split(job) and job.stage == 0:
            hand = self.fleet.kv_transfer
            begins = max(self.now, r.link_free)
            r.link_free = begins + job.n_input * hand.cache_bytes_per_token / hand.link_bytes_per_s
            self.delayed.append((at(r.link_free + hand.latency_s), job.number))
            self.counts["handovers"] += 1
            job.state, job.stage, job.first_s = "delayed", 1, None
            return
        job.state, job.end_s, job.deadline = "done", self.now, NEVER

    def complete_steps(self) -> None:
        for r in self.replicas:
            if r.step_end == self.now:
                r.step_end = NEVER
                r.engine.end_step(self.now)
        for r in self.replicas:
            for job in list(r.sent):
                if job.request.first_s is not None:
                    job.first_s = job.request.first_s
            self.remove_aborted(r)
            for job in [job for job in r.sent if job.request.end_s is not None]:
                self.finish(r, job)
        for r in self.replicas:
            is_waiting = r.status == "draining" and r.purpose != "return"
            if is_waiting and r.outstanding == 0:
                self.drained(r)
        for p in range(len(self.held)):
            self.send_queued(p)

    def begin_steps(self) -> None:
        for r in self.replicas:
            engine = r.engine
            if engine and r.step_end == NEVER and (engine.running or engine.waiting):
                engine.now_s = self.now
                r.step_end = engine.begin_step()

    def one_event(self) -> bool:
        due = [r for r in self.replicas if self.due(r) == self.now]
        late = [job for job in self.jobs if job.deadline == self.now]
        ready = sorted(entry for entry in self.delayed if entry[0] == self.now)
        fresh = [j for j in self.jobs if j.state == "to come" and j.origin == self.now]
        pools = [p for p in range(len(self.held)) if self.now in (self.tick_at[p], self.roll_at[p])]
        if due:
            self.change(due[0])
        elif self.outages and self.outages[0][0] == self.now:
            _, number, lasts_s = self.outages.pop(0)
            if self.replicas[number].status not in ("off", "failed"):
                self.counts["failures"] += 1
                self.fail(self.replicas[number], lasts_s)
        elif pools and self.roll_at[pools[0]] == self.now:
            self.roll(pools[0])
        elif pools:
            self.tick(pools[0])
        elif late:
            self.lose_patience(min(late, key=lambda job: (job.requested_at, job.number)))
        elif ready:
            self.delayed.remove(ready[0])
            self.come(self.jobs[ready[0][1]])
        elif fresh:
            self.come(fresh[0])
        else:
            return False
        return True

    def roll(self, p: int) -> None:
        every = self.fleet.pools[p].restarts.every_s
        self.roll_at[p] = NEVER if every is None else at(self.roll_at[p] + every)
        for r in self.of(p, "ready"):
            r.is_marked = True
        self.roll_on(p)

    def due(self, r: Replica) -> float:
        return min(r.ready_at, r.fail_at, r.notice_at, r.kill_at, r.repair_at)

    def run(self) -> None:
        ended = ("done", "refused", "timed out", "lost")
        while not all(job.state in ended for job in self.jobs):
            instants = [r.step_end for r in self.replicas] + [self.due(r) for r in self.replicas]
            instants += [*self.tick_at, *self.roll_at, *(entry[0] for entry in self.delayed)]
            instants += [job.deadline for job in self.jobs]
            instants += [job.origin for job in self.jobs if job.state == "to come"]
            instants += [entry[0] for entry in self.outages[:1]]
            self.now = min(instants)
            if self.now == NEVER or self.now > 50 * 86400:
                return
            self.complete_steps()
            while not all(job.state in ended for job in self.jobs) and self.one_event():
                self.complete_steps()
            self.begin_steps()


def table_time_s(table: StepTable) -> StepTime:
    """The definition of a step table, written out: the greatest of its limits, and the host."""
    work, rates = table.attention, table.rates

    def time_s(n_prefill: int, pairs: float, n_ended: int, contexts: list[int]) -> float:
        n, rows, total = len(contexts), len(contexts) + n_ended, sum(contexts)
        tokens = n_prefill + n
        has_window = work.window_decode_flop or work.window_cache_bytes or work.window_prefill_flop
        window = work.window_tokens if has_window else math.inf
        held, seen = min(total, n * window), min(pairs, n_prefill * window)
        decode = work.decode_flop * total + work.scan_flop * n
        decode += work.window_decode_flop * held if held else 0.0
        prefill = work.prefill_flop * pairs + work.scan_flop * n_prefill
        prefill += work.window_prefill_flop * seen if seen else 0.0
        read = work.cache_bytes * total + work.state_bytes * n
        read += work.window_cache_bytes * held if held else 0.0
        d, r = decode / rates.flop_per_s, read / rates.bytes_per_s
        attention = max(d, r) + rates.serial_frac * min(d, r) + prefill / rates.flop_per_s
        device = table.token_device_s[tokens] + table.row_device_s[rows] + attention
        arithmetic = table.token_arithmetic_s[tokens] + table.row_arithmetic_s[rows]
        arithmetic += (decode + prefill) / rates.peak_flop_per_s
        memory = table.token_memory_s[tokens] + read / rates.peak_bytes_per_s
        longest = max(device, arithmetic, memory, table.token_link_s[tokens])
        if n_prefill:
            longest = max(longest, table.prompt_floor_s)
        return float(longest + table.host_s + table.host_sequence_s * rows)

    return time_s

"""The slow fleet with engines of `kernels.reference_features`: with policies."""

from dataclasses import dataclass

from gpuplan.domain.traffic.stream import Requests
from kernels.oracles import rules_of
from kernels.reference_features import Engine, Request
from kernels.slow_fleet import Job, SlowFleet


@dataclass
class TimedRequest(Request):
    """The same request under the names that the slow fleet knows."""

    @property
    def first_s(self) -> float | None:
        return self.first

    @property
    def end_s(self) -> float | None:
        return self.end


class TornFeatured(Engine):
    """Steps have a beginning and an end, with time for mishaps in between."""

    now_s = property(lambda self: self.now, lambda self, at: setattr(self, "now", at))

    def next_to_admit(self) -> Request:
        if not self.rules.is_priority:
            return self.waiting[0]
        return min(self.waiting, key=lambda r: (r.priority, r.arrive, r.number))

    def begin_step(self) -> float:
        self.scheduled = self.schedule()
        here = [r for r in self.running if r.number in self.scheduled]
        chunks = [(r, self.scheduled[r.number]) for r in here if not r.is_decoding]
        pairs = sum(n * (r.n_computed + n / 2) for r, n in chunks)
        n_ended = sum(r.n_computed + n == r.n_tokens for r, n in chunks)
        contexts = [r.n_tokens for r in here if r.is_decoding]
        if not self.scheduled:
            return self.now
        return self.now + self.step_time(sum(n for _, n in chunks), pairs, n_ended, contexts)

    def end_step(self, now_s: float) -> None:
        self.now = now_s
        for request in [r for r in self.running if r.number in self.scheduled]:
            self.gain(request, self.scheduled[request.number])
        self.check()

    def remove(self, request: Request) -> None:
        if request in self.running:
            self.running.remove(request)
            self.pool.release(request.blocks)
        elif request in self.waiting:
            self.waiting.remove(request)


class SlowFeaturedFleet(SlowFleet):
    """`paths` is the text of every request; see `kernels.texts`."""

    def __init__(self, requests: Requests, paths, *parts) -> None:
        self.requests, self.paths = requests, paths
        super().__init__(*parts)

    def engine_of(self, p: int) -> TornFeatured:
        return TornFeatured(rules_of(self.fleet.pools[p].limits), self.step_times[p])

    def request_of(self, job: Job, n_output: int) -> TimedRequest:
        return TimedRequest(
            number=job.number, arrive=self.now, n_input=job.n_input, n_output=n_output,
            priority=int(self.requests.priority[job.number]), path=self.paths[job.number],
        )  # fmt: skip

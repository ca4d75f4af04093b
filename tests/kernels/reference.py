"""vLLM V1's scheduler written down slowly, from its rules alone: the oracle of the kernels.

Blocks have numbers, queues are deques, time is a float, and an iteration costs whatever the
function that is handed in says. Of the package only the limits are read.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gpuplan.domain.simulation.engine import EngineLimits


@dataclass
class Request:
    number: int
    arrive_s: float
    n_input: int
    n_output: int
    n_made: int = 0
    n_computed: int = 0
    is_decoding: bool = False
    blocks: list[int] = field(default_factory=list)
    start_s: float | None = None
    first_s: float | None = None
    end_s: float | None = None
    n_preemptions: int = 0

    @property
    def n_tokens(self) -> int:
        return self.n_input + self.n_made


@dataclass
class Rules:
    max_tokens: int
    max_sequences: int
    n_blocks: int
    block_tokens: int
    reserves_prompt: bool = True
    long_prefill_tokens: int = 0
    watermark: int = 0  # blocks that an admission leaves free while others run
    is_ahead: bool = False  # a step is drawn up when the one before it begins
    lone_is_whole: bool = True  # a long prompt that is alone is not cut


def rules_of(limits: EngineLimits) -> Rules:
    """The rules that an engine of the package has."""
    admission = limits.admission
    return Rules(
        limits.max_batch_tokens, limits.max_sequences, limits.n_blocks, limits.block_tokens,
        admission.reserves_prompt, limits.long_prefill_tokens or 0,
        admission.blocks.watermark_blocks, admission.is_ahead, admission.lone_prompt_is_whole,
    )  # fmt: skip


# prefill tokens, pairs of prefill token and context, prompts that end, contexts of the decodes
StepTime = Callable[[int, float, int, list[int]], float]


class Engine:
    """One replica; `log` holds the clock and the free blocks after every iteration."""

    def __init__(self, rules: Rules, step_time_s: StepTime) -> None:
        self.rules, self.step_time_s = rules, step_time_s
        self.free = list(range(rules.n_blocks))
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()
        self.leaving: list[Request] = []  # ended; the step drawn up meanwhile still has them
        self.coming: deque[Request] = deque()
        self.now_s = self.begun_s = 0.0
        self.n_steps = 0
        self.is_lone = False
        self.log: list[tuple[float, int]] = []

    def allocate(self, request: Request, n_new: int) -> bool:
        wanted = -(-(request.n_computed + n_new) // self.rules.block_tokens)
        missing = wanted - len(request.blocks)
        if missing > len(self.free):
            return False
        request.blocks += [self.free.pop() for _ in range(missing)]
        return True

    def preempt_last(self) -> Request:
        victim = self.running.pop()
        self.free += victim.blocks
        victim.blocks = []
        victim.n_preemptions += 1
        if victim in self.leaving:
            self.leaving.remove(victim)
            return victim
        victim.n_computed, victim.is_decoding = 0, False
        self.waiting.appendleft(victim)
        return victim

    def n_new(self, request: Request, budget: int) -> int:
        n = request.n_tokens - request.n_computed
        if 0 < self.rules.long_prefill_tokens < n and not self.is_lone:
            n = self.rules.long_prefill_tokens
        return min(n, budget)

    def schedule(self) -> dict[int, int]:
        """Tokens of every scheduled request."""
        n_requests = len(self.running) + len(self.waiting)
        self.is_lone = self.rules.lone_is_whole and n_requests == 1
        scheduled: dict[int, int] = {}
        budget, at, has_preempted = self.rules.max_tokens, 0, False
        while at < len(self.running) and budget > 0:
            request = self.running[at]
            if request in self.leaving:
                at += 1
                continue
            n = self.n_new(request, budget)
            while not self.allocate(request, n):
                has_preempted = True
                if self.preempt_last() is request:
                    request = None
                    break
            if request is None:
                break
            scheduled[request.number] = n
            budget -= n
            at += 1
        if not has_preempted:
            self.admit(scheduled, budget)
        return scheduled

    def admit(self, scheduled: dict[int, int], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.rules.max_sequences:
            request = self.waiting[0]
            n = self.n_new(request, budget)
            whole = -(-request.n_tokens // self.rules.block_tokens)
            spare = len(self.free) - (self.rules.watermark if self.running else 0)
            if self.rules.reserves_prompt and whole > spare:
                return
            if -(-(request.n_computed + n) // self.rules.block_tokens) > spare:
                return
            assert self.allocate(request, n)
            self.waiting.popleft()
            self.running.append(request)
            if request.start_s is None:
                request.start_s = self.now_s
            scheduled[request.number] = n
            budget -= n

    def step(self) -> None:
        scheduled = self.schedule()
        if self.rules.is_ahead and not scheduled:
            self.let_go()
            self.hear(self.now_s)
            scheduled = self.schedule()
        prefills = [r for r in self.running if r.number in scheduled and not r.is_decoding]
        decodes = [r for r in self.running if r.number in scheduled and r.is_decoding]
        n_prefill = sum(scheduled[r.number] for r in prefills)
        pairs = sum(
            scheduled[r.number] * (r.n_computed + scheduled[r.number] / 2) for r in prefills
        )
        n_ended = sum(r.n_computed + scheduled[r.number] == r.n_tokens for r in prefills)
        if scheduled:
            self.now_s += self.step_time_s(n_prefill, pairs, n_ended, [r.n_tokens for r in decodes])
            self.n_steps += 1
        self.let_go()
        for request in list(self.running):
            if request.number in scheduled:
                self.gain(request, scheduled[request.number])
        self.log.append((self.now_s, len(self.free)))

    def gain(self, request: Request, n: int) -> None:
        request.n_computed += n
        if request.n_computed < request.n_tokens:
            return
        request.n_made += 1
        request.is_decoding = True
        if request.first_s is None:
            request.first_s = self.now_s
        if request.n_made == request.n_output:
            request.end_s = self.now_s
            self.leaving.append(request)
            if not self.rules.is_ahead:
                self.let_go()

    def let_go(self) -> None:
        for request in self.leaving:
            self.free += request.blocks
            request.blocks = []
            self.running.remove(request)
        self.leaving = []

    def hear(self, known_s: float) -> None:
        while self.coming and self.coming[0].arrive_s <= known_s:
            self.waiting.append(self.coming.popleft())

    def run(self, requests: list[Request]) -> None:
        self.coming = deque(requests)
        while self.coming or self.waiting or self.running:
            self.hear(self.begun_s if self.rules.is_ahead else self.now_s)
            if not self.running and not self.waiting:
                self.now_s = max(self.now_s, self.coming[0].arrive_s)
                self.hear(self.now_s)
            self.begun_s = self.now_s
            self.step()
            held = sum(len(r.blocks) for r in self.running)
            assert held + len(self.free) == self.rules.n_blocks

"""vLLM V1's scheduler with its options, block by block, from its rules alone: an oracle.

Blocks have numbers and reference counts, the queue of free blocks is a list, every sequence is
looked at in every step, and time is whatever the function that is handed in says, in whole units.
Nothing here is shared with the package.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Block:
    number: int
    text: tuple[int, int] | None = None  # segment and place in it, once the block is full
    n_users: int = 0


@dataclass
class Request:
    number: int
    arrive: int
    n_input: int
    n_output: int
    priority: int = 0
    path: list[tuple[int, int]] = field(default_factory=list)  # text of each block, as far as known
    n_made: int = 0
    n_computed: int = 0
    is_decoding: bool = False
    blocks: list[Block] = field(default_factory=list)
    n_entered: int = 0
    start: int | None = None
    first: int | None = None
    end: int | None = None
    n_preemptions: int = 0
    n_hit: int = 0

    @property
    def n_tokens(self) -> int:
        return self.n_input + self.n_made

    def text(self, place: int) -> tuple[int, int]:
        if place < len(self.path):
            return self.path[place]
        return (self.number, place - len(self.path))


@dataclass
class Rules:
    max_tokens: int
    max_sequences: int
    n_blocks: int
    block_tokens: int
    reserves_prompt: bool = True
    long_prefill_tokens: int = 0
    is_ahead: bool = False  # a step is drawn up when the one before it begins
    caches: bool = False
    is_priority: bool = False
    ends_by_eos: bool = False  # an end is known with the last token, not from the length asked for
    lone_is_whole: bool = True  # a long prompt that is alone is not cut
    watermark: int = 0  # blocks that an admission leaves free while others run
    bare_first: bool = True  # blocks without text are reused before any with text


# prefill tokens, twice the pairs of token and context, prompts that end, contexts of the decodes
StepTime = Callable[[int, int, int, list[int]], int]


class Pool:
    """Blocks and what is found in them."""

    def __init__(self, n: int, *, bare_first: bool) -> None:
        self.bare_first = bare_first
        self.free = [Block(number) for number in range(n)]
        self.found: dict[tuple[int, int], list[Block]] = {}

    def take(self, n: int) -> list[Block]:
        taken, self.free = self.free[:n], self.free[n:]
        for block in taken:
            if block.text is not None:
                self.forget(block)
            block.n_users = 1
        return taken

    def forget(self, block: Block) -> None:
        copies = self.found[block.text]
        copies.remove(block)
        if not copies:
            del self.found[block.text]
        block.text = None

    def touch(self, blocks: list[Block]) -> None:
        for block in blocks:
            if block.n_users == 0:
                self.free.remove(block)
            block.n_users += 1

    def release(self, blocks: list[Block]) -> None:
        bare, kept = [], []
        for block in reversed(blocks):
            block.n_users -= 1
            if block.n_users == 0:
                (bare if block.text is None else kept).append(block)
        self.free = bare + self.free + kept if self.bare_first else self.free + bare + kept


class Engine:
    def __init__(self, rules: Rules, step_time: StepTime) -> None:
        self.rules, self.step_time = rules, step_time
        self.pool = Pool(rules.n_blocks, bare_first=rules.bare_first)
        self.leaving: list[Request] = []  # ended; the step drawn up meanwhile still has them
        self.coming: list[Request] = []
        self.is_lone = False
        self.running: list[Request] = []
        self.waiting: list[Request] = []
        self.now = self.begun = 0
        self.n_steps = 0

    def n_blocks(self, n_tokens: int) -> int:
        return -(-n_tokens // self.rules.block_tokens)

    def look_up(self, request: Request) -> list[Block]:
        if not self.rules.caches:
            return []
        found = []
        for place in range((request.n_tokens - 1) // self.rules.block_tokens):
            copies = self.pool.found.get(request.text(place))
            if copies is None:
                break
            found.append(copies[0])
        return found

    def enter(self, request: Request, n_tokens: int) -> None:
        # A token of the step in flight is not known yet.
        n_known = request.n_tokens - (self.rules.is_ahead and request.is_decoding)
        full = min(n_tokens, n_known) // self.rules.block_tokens
        for place in range(request.n_entered, full if self.rules.caches else 0):
            text, block = request.text(place), request.blocks[place]
            block.text = text
            self.pool.found.setdefault(text, []).append(block)
        request.n_entered = max(request.n_entered, full)

    def allocate(self, request: Request, n_new: int) -> bool:
        missing = self.n_blocks(request.n_computed + n_new) - len(request.blocks)
        if missing > len(self.pool.free):
            return False
        request.blocks += self.pool.take(max(0, missing))
        self.enter(request, request.n_computed + n_new)
        return True

    def victim(self) -> Request:
        if not self.rules.is_priority:
            return self.running[-1]
        return max(self.running, key=lambda r: (r.priority, r.arrive))

    def preempt(self, victim: Request) -> None:
        self.running.remove(victim)
        self.pool.release(victim.blocks)
        victim.n_preemptions += 1
        victim.blocks = []
        if victim in self.leaving:
            self.leaving.remove(victim)
            return
        victim.n_computed, victim.n_entered = 0, 0
        victim.is_decoding = False
        self.waiting.insert(0, victim)

    def n_new(self, request: Request, n_left: int, budget: int) -> int:
        if 0 < self.rules.long_prefill_tokens < n_left and not self.is_lone:
            n_left = self.rules.long_prefill_tokens
        return min(n_left, budget)

    def schedule(self) -> dict[int, int]:
        n_requests = len(self.running) + len(self.waiting)
        self.is_lone = self.rules.lone_is_whole and n_requests == 1
        scheduled: dict[int, int] = {}
        budget, at, has_preempted = self.rules.max_tokens, 0, False
        while at < len(self.running) and budget > 0:
            request = self.running[at]
            if request in self.leaving and not self.rules.ends_by_eos:
                at += 1
                continue
            n = self.n_new(request, request.n_tokens - request.n_computed, budget)
            is_gone = False
            while not is_gone and not self.allocate(request, n):
                has_preempted = True
                victim = self.victim()
                if self.running.index(victim) < at:
                    at -= 1
                budget += scheduled.pop(victim.number, 0)
                is_gone = victim is request
                self.preempt(victim)
            if is_gone:
                break
            scheduled[request.number] = n
            budget -= n
            at += 1
        if not has_preempted:
            self.admit(scheduled, budget)
        return scheduled

    def next_to_admit(self) -> Request:
        if not self.rules.is_priority:
            return self.waiting[0]
        return min(self.waiting, key=lambda r: (r.priority, r.number))

    def admit(self, scheduled: dict[int, int], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.rules.max_sequences:
            request = self.next_to_admit()
            found = self.look_up(request)
            n_hit = len(found) * self.rules.block_tokens
            n = self.n_new(request, request.n_tokens - n_hit, budget)
            whole = request.n_tokens if self.rules.reserves_prompt else n_hit + n
            missing = self.n_blocks(whole) - len(found) + sum(b.n_users == 0 for b in found)
            missing += self.rules.watermark if self.running else 0
            if missing > len(self.pool.free):
                return
            self.waiting.remove(request)
            self.running.append(request)
            self.pool.touch(found)
            request.blocks, request.n_entered = list(found), len(found)
            request.n_computed = n_hit
            assert self.allocate(request, n)
            if request.start is None:
                request.start, request.n_hit = self.now, n_hit
            scheduled[request.number] = n
            budget -= n

    def step(self) -> None:
        scheduled = self.schedule()
        if self.rules.is_ahead and not scheduled:
            self.let_go()
            self.hear(self.now)
            scheduled = self.schedule()
        here = [r for r in self.running if r.number in scheduled]
        prefills = [r for r in here if not r.is_decoding]
        decodes = [r for r in here if r.is_decoding]
        chunks = [(r, scheduled[r.number]) for r in prefills]
        pairs = sum(n * (2 * r.n_computed + n) for r, n in chunks)
        n_ended = sum(r.n_computed + n == r.n_tokens for r, n in chunks)
        if scheduled:
            contexts = [r.n_tokens for r in decodes]
            self.now += self.step_time(sum(n for _, n in chunks), pairs, n_ended, contexts)
            self.n_steps += 1
        gone = list(self.leaving)
        self.let_go()
        for request in [r for r in here if r not in gone]:
            self.gain(request, scheduled[request.number])

    def gain(self, request: Request, n: int) -> None:
        request.n_computed += n
        if request.n_computed < request.n_tokens:
            return
        request.n_made += 1
        request.is_decoding = True
        if request.first is None:
            request.first = self.now
        if request.n_made == request.n_output:
            request.end = self.now
            self.leaving.append(request)
            if not self.rules.is_ahead:
                self.let_go()

    def let_go(self) -> None:
        for request in self.leaving:
            self.enter(request, request.n_tokens - 1)
            self.running.remove(request)
            self.pool.release(request.blocks)
            request.blocks = []
        self.leaving = []

    def hear(self, known: int) -> None:
        while self.coming and self.coming[0].arrive <= known:
            self.waiting.append(self.coming.pop(0))

    def run(self, requests: list[Request]) -> None:
        self.coming = list(requests)
        while self.coming or self.waiting or self.running:
            self.hear(self.begun if self.rules.is_ahead else self.now)
            if not self.running and not self.waiting:
                self.now = max(self.now, self.coming[0].arrive)
                self.hear(self.now)
            self.begun = self.now
            self.step()
            self.check()

    def check(self) -> None:
        """Every block is free or used, and what is found is there."""
        used = {b.number for r in self.running for b in r.blocks}
        assert len(used) + len(self.pool.free) == self.rules.n_blocks
        assert sum(len(copies) for copies in self.pool.found.values()) <= self.rules.n_blocks

"""An inference engine as a simulation sees it: its limits, and what an iteration costs."""

from gpuplan.domain.columns import Floats
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.noun import dataclass
from gpuplan.domain.simulation.batching import BatchPolicy

SCHEDULINGS = ("fcfs", "priority", "lpm")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillFirst:
    """SGLang's scheduler: prompts go first, and what answers ask for is set aside."""

    chunk_tokens: int | None = 8192  # of a prefill batch; None: prompts are not cut
    max_prefill_tokens: int = 16384  # of a prefill batch where prompts are not cut
    is_mixed: bool = False  # decodes ride along with prompts
    is_longest_first: bool = False  # longest known prefix first (LPM), not first come
    conservativeness_ratio: float = 1.0  # scales the share of an answer that is set aside
    max_tokens: int | None = None  # that every request asks for, unless it says so itself
    ignores_eos: bool | None = (
        None  # lengths are known; None: where nobody asks for more than it gets
    )
    knows_ends: bool = True  # 0.5.22 on: known lengths are reserved whole, last tokens foreseen


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRules:
    """What holds where several batches are on the way at once."""

    fills_queue: bool = True  # with empty batches too, before one is waited for
    # Who is preempted is not admitted before all that is on the way for it has come.
    waits_for_late: bool = True
    keeps_turns: bool = True  # a victim that was passed over costs nobody a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGroup:
    """Layers of one kind, which take blocks of their own from the pool that all groups share."""

    kind: str  # full attention, a sliding "window", a "chunk" of local attention, or a "state"
    tokens: int = 0  # of the window or the chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPool:
    """Blocks that groups of layers share, of an engine whose model has layers of several kinds.

    The engine's own count of blocks is of equal layers, and holds as many requests of mean length.
    """

    groups: tuple[KvGroup, ...]
    n_blocks: int
    n_layers: int  # of each group, with padding


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRules:
    """Who gets which blocks of the KV cache."""

    watermark_blocks: int = 0  # left free by an admission while others run
    reuses_bare_first: bool = True  # free blocks without text before the oldest with text
    groups: tuple[KvGroup, ...] = ()  # of layers, in the engine's order; none: all alike
    hybrid: HybridPool | None = None  # groups that the model has by itself; None: not simulated
    # A prompt is said to need no more of a window than it spans with the tokens on the way.
    caps_windows: bool = True
    # Blocks leave a window when the iteration that passed them has ended, not when it is drawn up.
    frees_windows_late: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """When a request joins what runs, and what it may take."""

    reserves_prompt: bool = True  # only where the whole prompt has room, not its first chunk
    # The next iteration is drawn up while one runs: who comes meanwhile joins one iteration later.
    is_ahead: bool = False
    # Responses end by a token of their own, which is known late, not by the requested length;
    # requests that say what they ask for (max_tokens) end by the length where they get all of it.
    ends_by_eos: bool = False
    lone_prompt_is_whole: bool = True  # the limit on long prefills spares a request that is alone
    chunks_prompts: bool = True  # else a prompt waits until it fits an iteration whole
    n_stages: int = 1  # of a pipeline; as many batches are on the way at once
    stages: StageRules = StageRules()
    max_adapters: int | None = None  # different LoRA adapters in one iteration
    pads_decodes: bool = True  # one token of a prompt takes as many as a decode with its drafts
    blocks: BlockRules = BlockRules()
    prefill_first: PrefillFirst | None = None  # SGLang's scheduler; None: vLLM's


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What the scheduler of one engine may hand out."""

    max_batch_tokens: int  # of one iteration
    max_sequences: int
    n_blocks: int  # of the key-value cache
    block_tokens: int
    admission: Admission = Admission()
    long_prefill_tokens: int | None = None  # the most that one prompt takes of an iteration
    max_context_tokens: int | None = None  # longer requests are refused
    start_s: float = 0.0  # of every request outside the engine: network, tokenizer
    caches_prefixes: bool = False  # blocks of equal text are kept and found again
    scheduling: str = "fcfs"  # or "priority": lower numbers first, then first come
    drafts: SpeculativeDecoding | None = None  # speculative decoding
    draws_acceptance: bool = False  # drafts are accepted by chance, step by step; else as the mean

    @property
    def groups(self) -> tuple[KvGroup, ...]:
        """Of layers that share the blocks; none where all are alike."""
        return self.admission.blocks.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionWork:
    """Attention and recurrence; "window" parts see at most `window_tokens`."""

    decode_flop: float  # per sequence and token of context
    window_decode_flop: float
    prefill_flop: float  # per token and token of context
    window_prefill_flop: float
    scan_flop: float  # per token
    cache_bytes: float  # read per sequence and token of context
    window_cache_bytes: float
    state_bytes: float  # read per sequence
    window_tokens: float
    prefix_decode_flop: float = 0.0  # per sequence: its cached prefix, left out of the context
    prefix_prefill_flop: float = 0.0  # per prompt token: the same


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRates:
    """How fast attention runs, and how fast nothing is."""

    flop_per_s: float
    bytes_per_s: float
    peak_flop_per_s: float
    peak_bytes_per_s: float
    serial_frac: float  # share of the shorter of arithmetic and reads that is not hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """Time of any iteration: columns by its tokens or its sampled rows, attention apart.

    time = max(device, limits) + host; device = tokens + rows + attention; limits are peak
    arithmetic, peak memory rate and peak link rate.
    """

    token_device_s: Floats  # by tokens, from 0
    token_arithmetic_s: Floats
    token_memory_s: Floats
    token_link_s: Floats
    row_device_s: Floats  # by sampled rows, from 0
    row_arithmetic_s: Floats
    attention: AttentionWork
    rates: AttentionRates
    host_s: float
    host_sequence_s: float
    prompt_floor_s: float = (
        0.0  # of an iteration that reads prompts: the host launches it piecewise
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Step times of one's own: a curve over the tokens of an iteration, and attention.

    time = curve(tokens) + context_s x context of decodes + pair_s x pairs of prompt tokens. The
    curve is linear between its points, and goes on as its last two points do.
    """

    tokens: Floats  # rising
    step_s: Floats  # at so many tokens
    context_s: float = 0.0  # per token of context of each sequence that decodes
    pair_s: float = 0.0  # per token of a prompt and token before it


@dataclass(frozen=True, slots=True, kw_only=True)
class LockStep:
    """Data-parallel ranks that step together, and what they do together."""

    n_engines: int  # that step together
    own: StepTable  # what an engine does by itself
    shared_s: Floats  # by the tokens of all: the experts, and the way to them and back


@dataclass(frozen=True, slots=True, kw_only=True)
class KvTransfer:
    """Keys and values travel from the replica that read the prompt, one request at a time."""

    cache_bytes_per_token: float
    link_bytes_per_s: float
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeEngines:
    """Engines that decode what others have prefilled (prefill/decode disaggregation)."""

    n_engines: int
    table: StepTable
    transfer: KvTransfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Equal engines behind one router."""

    limits: EngineLimits
    table: StepTable  # where engines step together: with equal loads on all of them
    n_engines: int = 1
    lockstep: LockStep | None = None  # None: every engine by itself
    router: str = "round_robin"
    seed: int = 0  # of a router that draws
    batching: BatchPolicy | None = None  # None: requests join and leave between iterations
    decode: DecodeEngines | None = None  # None: every engine prefills and decodes

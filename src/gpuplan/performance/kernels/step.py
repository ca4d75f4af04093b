"""One iteration of an inference engine: work, constants and load in; seconds out.

Every field may be a float or a column of floats: the formula holds only arithmetic, so that
Python numbers, numpy columns and a compiled loop give the same answer.
"""

from typing import NamedTuple

from gpuplan.performance.kernels.curves import (
    FREE,
    AllReduceTerms,
    Curve,
    Number,
    curve_time_s,
    greater,
    lesser,
    quickest_time_s,
)

ADAPTER_COMPUTE_FRAC = 0.25
SAMPLED_LOGITS = 1e5
NORM_BYTES = 8.0  # sums of squares of a token's queries and keys, 32 bits each


class Matrices(NamedTuple):
    """Matrices that every token passes, on one accelerator."""

    quantized_flop: Number  # per token
    quantized_bytes: Number
    quantized_peak_flop_per_s: Number
    base_flop: Number  # per token
    base_bytes: Number
    base_peak_flop_per_s: Number
    head_flop: Number  # per sampled sequence
    head_bytes: Number
    n_logits: Number  # of a sampled sequence


class ExpertMatrices(NamedTuple):
    """Routed experts on one accelerator; all zero for a dense network."""

    flop: Number  # of one token through one expert, all layers
    expert_bytes: Number  # one expert of every layer
    peak_flop_per_s: Number
    n_experts: Number
    n_active: Number
    uneven_ranks: Number  # 1 - 1/(expert-parallel size); 0 without expert parallelism


class Mixing(NamedTuple):
    """Attention and recurrence on one accelerator; "limited" parts see at most a window."""

    cache_bytes: Number  # read per sequence and token of context
    limited_cache_bytes: Number
    limit_tokens: Number
    state_bytes: Number  # read and written per sequence
    decode_flop: Number  # per sequence and token of context
    limited_decode_flop: Number
    prefill_flop: Number  # per token and token of context
    limited_prefill_flop: Number
    scan_flop: Number  # per token
    peak_flop_per_s: Number


class Exchange(NamedTuple):
    """Traffic between accelerators and what is paid per operator."""

    n_reduces: Number
    n_norm_reduces: Number  # of two numbers per token: norms across heads that ranks share
    reduce: AllReduceTerms
    n_dispatches: Number  # all-to-all calls of dealt experts
    dispatch: Curve
    n_dispatch_copies: Number  # ranks that one token goes to
    n_stage_hops: Number
    stage: Curve
    vector_bytes: Number  # one token's hidden vector
    link_bytes_per_s: Number  # line rate, one direction
    n_operators: Number
    activation_bytes: Number  # per token, element-wise reads and writes


class ContextParallel(NamedTuple):
    """Ranks that share every sequence; they gather each other's cache and partial answers."""

    n_ranks: Number = 1.0
    n_gathers: Number = 0.0  # one per layer with attention
    gather: Curve = FREE
    cache_bytes: Number = 0.0  # of one prompt token and layer
    answer_bytes: Number = 0.0  # query and partial answer of one decoding token and layer


class Adapters(NamedTuple):
    """Low-rank matrices beside the model's own, on one accelerator."""

    flop: Number = 0.0  # per token that has one
    adapter_bytes: Number = 0.0  # one adapter of every layer
    n_adapters: Number = 1.0  # asked for alike
    token_frac: Number = 0.0  # of all tokens, that have one
    n_operators: Number = 0.0


class StepWork(NamedTuple):
    """What one iteration does, before any efficiency."""

    matrices: Matrices
    experts: ExpertMatrices
    mixing: Mixing
    exchange: Exchange
    memory_bytes_per_s: Number
    n_data_parallel: Number
    context: ContextParallel = ContextParallel()
    adapters: Adapters = Adapters()


class StepConstants(NamedTuple):
    """The free numbers of the iteration, each fitted (calibration/data)."""

    gemm_compute_frac: Number  # of the dense peak
    gemm_read_frac: Number  # of the memory's rate
    gemm_warm_tokens: Number  # compute that small batches waste
    gemm_serial_frac: Number  # share of the shorter of compute and read that is not hidden
    expert_serial_frac: Number  # the same of experts: some of them compute while others read
    expert_compute_frac: Number  # of the dense peak
    expert_read_frac: Number  # of the memory's rate
    expert_pad_tokens: Number  # rows that each touched expert wastes
    expert_uneven_frac: Number  # excess of the fullest rank
    expert_evenness: Number  # of routing: shape of the experts' popularity
    cache_read_frac: Number
    attention_compute_frac: Number
    activation_read_frac: Number
    sample_s: Number  # to choose a token among 100,000
    operator_s: Number
    launch_s: Number  # of the host per operator, where prompts are read and no graph is replayed
    reduce_sync_s: Number  # of a collective inside an iteration, beyond its own time
    reduce_time_frac: Number  # of a collective's time measured alone
    host_s: Number
    host_sequence_s: Number
    host_hidden_frac: Number  # of the host's time, done while the device works on the step before
    slowdown_frac: Number  # of everything but the host


class StepLoad(NamedTuple):
    """What the iteration carries, for the whole replica."""

    prefill_tokens: Number
    prefill_context_tokens: Number  # mean context that those tokens see
    n_prefills: Number  # prompts that end here and are sampled
    n_decodes: Number
    context_tokens: Number  # mean context of the decoding sequences
    tokens_per_decode: Number = 1.0  # above 1: drafted tokens are checked along
    is_even: Number = 0.0  # 1: data-parallel ranks carry the same, however few the sequences are


class StepParts(NamedTuple):
    """Where the time of an iteration goes, in seconds."""

    matrices_s: Number
    experts_s: Number
    attention_s: Number
    activations_s: Number
    operators_s: Number
    exchange_s: Number
    host_s: Number  # what the device waits for
    limit_s: Number  # no machine is faster: peak arithmetic, peak memory, peak link


def overlapped(compute_s: Number, read_s: Number, serial_frac: Number) -> Number:
    """The longer of the two and the part of the shorter that does not hide behind it."""
    return greater(compute_s, read_s) + serial_frac * lesser(compute_s, read_s)


def n_touched(experts: ExpertMatrices, n_tokens: Number, evenness: Number) -> Number:
    """Experts that at least one of the tokens visits.

    Popularity is gamma-distributed over experts with shape `evenness`: large is uniform routing,
    where N(1 - (1 - k/N)^n) experts are touched; small leaves rare experts alone for longer.
    """
    # A dense network has no experts: the guard only keeps 0/0 away.
    odds = experts.n_active / greater(experts.n_experts, 1.0)
    others = greater(n_tokens - 1.0, 0.0)
    missed = (1.0 + odds * others / evenness) ** -evenness
    first = lesser(n_tokens, 1.0) * experts.n_active
    return first + (experts.n_experts - experts.n_active) * (1.0 - missed)


def _matrices(work: StepWork, k: StepConstants, n_tokens: Number, n_rows: Number) -> Number:
    m = work.matrices
    rate = work.memory_bytes_per_s * k.gemm_read_frac
    base_peak = m.base_peak_flop_per_s * k.gemm_compute_frac
    n_paid = n_tokens + k.gemm_warm_tokens
    quantized_s = m.quantized_flop * n_paid / (m.quantized_peak_flop_per_s * k.gemm_compute_frac)
    base_s, head_s = m.base_flop * n_paid / base_peak, m.head_flop * n_rows / base_peak
    quantized = overlapped(quantized_s, m.quantized_bytes / rate, k.gemm_serial_frac)
    base = overlapped(base_s, m.base_bytes / rate, k.gemm_serial_frac)
    head = overlapped(head_s, m.head_bytes / rate, k.gemm_serial_frac)
    return quantized + base + head + k.sample_s * n_rows * m.n_logits / SAMPLED_LOGITS


def n_tokens_of(work: StepWork, load: StepLoad) -> Number:
    """Tokens that pass the matrices of one context rank: prompts are shared, answers are not."""
    n_checked = load.n_decodes * load.tokens_per_decode
    return load.prefill_tokens / work.context.n_ranks + n_checked


def _n_ranks(work: StepWork, load: StepLoad, n_sequences: Number) -> Number:
    """Data-parallel ranks that these sequences are on: each belongs to one."""
    n_taken = greater(lesser(work.n_data_parallel, n_sequences), 1.0)
    return n_taken + load.is_even * (work.n_data_parallel - n_taken)


def on_fullest(work: StepWork, load: StepLoad) -> StepLoad:
    """What the fullest data-parallel rank carries; the others wait for it at the experts."""
    n_reading = _n_ranks(work, load, load.n_prefills)
    return StepLoad(
        load.prefill_tokens / n_reading,
        load.prefill_context_tokens,
        load.n_prefills / n_reading,
        load.n_decodes / _n_ranks(work, load, load.n_decodes),
        load.context_tokens,
        load.tokens_per_decode,
        load.is_even,
    )


def n_adapters_touched(adapters: Adapters, n_sequences: Number) -> Number:
    """Adapters that at least one of the sequences asks for, each with the same chance."""
    missed = (1.0 - 1.0 / adapters.n_adapters) ** (adapters.token_frac * n_sequences)
    return adapters.n_adapters * (1.0 - missed)


def _adapters(work: StepWork, k: StepConstants, n_tokens: Number, n_sequences: Number) -> Number:
    """Both thin products of every adapted projection, gathered by adapter [Punica2023]."""
    a = work.adapters
    # Assumption: ranks of 8 to 64 fill an eighth to a half of a tile; a quarter stands for them.
    peak = work.matrices.base_peak_flop_per_s * k.gemm_compute_frac * ADAPTER_COMPUTE_FRAC
    rate = work.memory_bytes_per_s * k.gemm_read_frac
    read = n_adapters_touched(a, n_sequences) * a.adapter_bytes / rate
    return overlapped(a.flop * a.token_frac * n_tokens / peak, read, k.expert_serial_frac)


def _experts(work: StepWork, k: StepConstants, n_tokens: Number) -> Number:
    e = work.experts
    touched = n_touched(e, n_tokens, k.expert_evenness)
    rows = e.n_active * n_tokens + touched * k.expert_pad_tokens
    compute = e.flop * rows / (e.peak_flop_per_s * k.expert_compute_frac)
    read = touched * e.expert_bytes / (work.memory_bytes_per_s * k.expert_read_frac)
    uneven = 1.0 + k.expert_uneven_frac * e.uneven_ranks
    return uneven * overlapped(compute, read, k.expert_serial_frac)


def attention_flop(mixing: Mixing, load: StepLoad, n_sharing: Number = 1.0) -> Number:
    """Scores, values and recurrence of all tokens of one rank's iteration."""
    observed = lesser(load.prefill_context_tokens, mixing.limit_tokens)
    per_token = (
        mixing.prefill_flop * load.prefill_context_tokens
        + mixing.limited_prefill_flop * observed
        + mixing.scan_flop
    )
    return load.prefill_tokens / n_sharing * per_token + decode_flop(mixing, load, n_sharing)


def decode_flop(mixing: Mixing, load: StepLoad, n_sharing: Number = 1.0) -> Number:
    """Scores, values and recurrence of the decoding sequences."""
    resident = lesser(load.context_tokens, mixing.limit_tokens)
    per_sequence = (
        mixing.decode_flop * load.context_tokens
        + mixing.limited_decode_flop * resident
        + mixing.scan_flop
    )
    return load.n_decodes * load.tokens_per_decode / n_sharing * per_sequence


def cache_read_bytes(mixing: Mixing, load: StepLoad, n_context: Number = 1.0) -> Number:
    """Cache and state that the decoding sequences read; context ranks share the cache alone."""
    resident = lesser(load.context_tokens, mixing.limit_tokens)
    cached = mixing.cache_bytes * load.context_tokens + mixing.limited_cache_bytes * resident
    return load.n_decodes * (cached / n_context + mixing.state_bytes)


def _attention(work: StepWork, k: StepConstants, load: StepLoad) -> Number:
    rate = work.mixing.peak_flop_per_s * k.attention_compute_frac
    n_sharing = work.context.n_ranks
    decode_s = decode_flop(work.mixing, load, n_sharing) / rate
    read_s = cache_read_bytes(work.mixing, load, n_sharing) / (
        work.memory_bytes_per_s * k.cache_read_frac
    )
    all_s = attention_flop(work.mixing, load, n_sharing) / rate
    return overlapped(decode_s, read_s, k.gemm_serial_frac) + all_s - decode_s


def _exchange(work: StepWork, k: StepConstants, n_tokens: Number, n_mean: Number) -> Number:
    """A rank's own collectives by its tokens; the way to the experts by the mean of all ranks."""
    x = work.exchange
    message = x.vector_bytes * n_tokens
    reduce_s = k.reduce_sync_s + k.reduce_time_frac * quickest_time_s(message, x.reduce)
    dispatch_s = k.reduce_sync_s + k.reduce_time_frac * curve_time_s(
        x.vector_bytes * n_mean * x.n_dispatch_copies, x.dispatch
    )
    stage_s = curve_time_s(message, x.stage)
    norm_s = k.reduce_sync_s + k.reduce_time_frac * quickest_time_s(NORM_BYTES * n_tokens, x.reduce)
    return (
        x.n_reduces * reduce_s
        + x.n_norm_reduces * norm_s
        + x.n_dispatches * dispatch_s
        + x.n_stage_hops * stage_s
    )


def context_bytes(work: StepWork, load: StepLoad) -> Number:
    """What the context ranks of one replica gather in one layer [Llama3-2024]."""
    c = work.context
    return c.cache_bytes * load.prefill_tokens + c.answer_bytes * load.n_decodes


def _context(work: StepWork, k: StepConstants, load: StepLoad) -> Number:
    c = work.context
    gather_s = k.reduce_sync_s + k.reduce_time_frac * curve_time_s(
        context_bytes(work, load), c.gather
    )
    return c.n_gathers * gather_s


def limit_s(work: StepWork, load: StepLoad, evenness: Number) -> Number:
    """What no machine of these peaks can undercut: the longest of arithmetic, memory and link."""
    m, e, x = work.matrices, work.experts, work.exchange
    c, a, here = work.context, work.adapters, on_fullest(work, load)
    n_all, n_here = n_tokens_of(work, load), n_tokens_of(work, here)
    n_rows = here.n_prefills + here.n_decodes * here.tokens_per_decode
    arithmetic = (
        m.quantized_flop * n_here / m.quantized_peak_flop_per_s
        + (m.base_flop + a.flop * a.token_frac) * n_here / m.base_peak_flop_per_s
        + m.head_flop * n_rows / m.base_peak_flop_per_s
        + e.flop * e.n_active * n_all / e.peak_flop_per_s
        + attention_flop(work.mixing, here, c.n_ranks) / work.mixing.peak_flop_per_s
    )
    moved = (
        m.quantized_bytes
        + m.base_bytes
        + m.head_bytes
        + n_touched(e, n_all, evenness) * e.expert_bytes
        + n_adapters_touched(a, here.n_prefills + here.n_decodes) * a.adapter_bytes
        + cache_read_bytes(work.mixing, here, c.n_ranks)
    )
    # A rank sends its vector at least once, even where the switch adds.
    n_sent = (x.n_reduces + x.n_stage_hops) * n_here
    n_sent += x.n_dispatches * x.n_dispatch_copies * n_all / work.n_data_parallel
    gathered = c.n_gathers * context_bytes(work, here) * (1.0 - 1.0 / c.n_ranks)
    link = (n_sent * x.vector_bytes + gathered) / x.link_bytes_per_s
    return greater(greater(arithmetic, moved / work.memory_bytes_per_s), link)


def step_parts(work: StepWork, k: StepConstants, load: StepLoad) -> StepParts:
    """The iteration, part by part: the fullest rank's own, and what all ranks do together."""
    here = on_fullest(work, load)
    n_all, n_here = n_tokens_of(work, load), n_tokens_of(work, here)
    n_rows = here.n_prefills + here.n_decodes * here.tokens_per_decode
    n_sequences = here.n_prefills + here.n_decodes
    n_operators = work.exchange.n_operators + work.adapters.n_operators
    slow = k.slowdown_frac
    activation_rate = work.memory_bytes_per_s * k.activation_read_frac
    touched_s = work.exchange.activation_bytes * n_here / activation_rate
    return StepParts(
        slow * (_matrices(work, k, n_here, n_rows) + _adapters(work, k, n_here, n_sequences)),
        slow * _experts(work, k, n_all),
        slow * _attention(work, k, here),
        slow * touched_s,
        slow * n_operators * k.operator_s,
        slow * (_exchange(work, k, n_here, n_all / work.n_data_parallel) + _context(work, k, here)),
        (1.0 - k.host_hidden_frac) * (k.host_s + k.host_sequence_s * n_sequences),
        limit_s(work, load, k.expert_evenness),
    )


def step_time_s(work: StepWork, k: StepConstants, load: StepLoad) -> Number:
    """The iteration as a whole, never below what the hardware allows.

    Engines that plan a step while the device runs the one before show the host only where the
    device is quicker than it. Steps that only decode replay a captured graph; one that reads
    prompts is launched operator by operator, however short its work.
    """
    p = step_parts(work, k, load)
    ahead_s = greater(
        k.host_hidden_frac * k.host_s, launched_s(work, k) * lesser(load.prefill_tokens, 1.0)
    )
    return greater(device_s(p), ahead_s) + p.host_s


def device_s(p: StepParts) -> Number:
    """What the device works on an iteration."""
    summed_s = (
        p.matrices_s + p.experts_s + p.attention_s + p.activations_s + p.operators_s + p.exchange_s
    )
    return greater(summed_s, p.limit_s)


def launched_s(work: StepWork, k: StepConstants) -> Number:
    """The host's time to launch every operator of an iteration once."""
    return k.launch_s * (work.exchange.n_operators + work.adapters.n_operators)

"""Serving regimes from the iteration: throughput and latency; plain numbers and columns alike."""

from typing import Any, NamedTuple

from gpuplan.performance.kernels.curves import Number, greater, lesser
from gpuplan.performance.kernels.step import StepConstants, StepLoad, StepWork, step_time_s

ONE = 1.0
N_FIXED_POINT_ROUNDS = 8


class RegimeConstants(NamedTuple):
    """The free numbers of a regime, each fitted (calibration/data)."""

    start_s: Number  # of one batch run offline: set-up, first launch
    serve_start_s: Number  # of one served request: network, tokenizer, first answer
    start_prompts: Number  # own prompts' worth of time that a served request loses at its start
    start_steps: Number  # iterations that it loses: those in flight, and those planned ahead
    interference_frac: Number  # of other requests' prefill that a decoding one waits for
    first_wave_frac: Number  # share of requests that ask at once when a closed loop starts
    fill_frac: Number  # of its answer that a running request holds or reserves on average
    batch_limit: Number  # sequences that a saturated engine really runs


class ServingCase(NamedTuple):
    """One replica's share of a workload; 1 replica sees n_sequences of them at once."""

    n_sequences: Number  # batch, limit or concurrency, per replica
    requests_per_s: Number  # per replica
    input_tokens: Number
    output_tokens: Number
    cache_bytes: Number  # room for the cache on one accelerator
    n_stages: Number
    cached_tokens: Number = 0.0  # of the prompt, found in the prefix cache
    checked_tokens: Number = 1.0  # per sequence and iteration: one and the drafted ones
    gained_tokens: Number = 1.0  # of those, kept on average
    is_balanced: Number = 0.0  # 1: data-parallel ranks read prompts in the same iterations


class Served(NamedTuple):
    """Throughput and latencies of one replica."""

    output_tokens_per_s: Number
    ttft_s: Number
    tpot_s: Number
    e2e_s: Number
    n_running: Number


def sequence_bytes(work: StepWork, n_tokens: Number) -> Number:
    """Cache and state of one sequence on one accelerator of a stage group."""
    mixing = work.mixing
    resident = lesser(n_tokens, mixing.limit_tokens)
    whole = mixing.cache_bytes * n_tokens + mixing.limited_cache_bytes * resident
    return whole + 0.5 * mixing.state_bytes


def n_held(work: StepWork, k: RegimeConstants, case: ServingCase) -> Number:
    """Sequences whose cache fits at once, at least one."""
    tokens = case.input_tokens + k.fill_frac * case.output_tokens
    # Stages share the layers, data-parallel ranks the sequences.
    n_ways = case.n_stages * work.n_data_parallel * work.context.n_ranks
    # A network that keeps nothing between iterations has room for any number.
    return greater(case.cache_bytes * n_ways / greater(sequence_bytes(work, tokens), ONE), ONE)


def mixed_load(case: ServingCase, n_prompts: Number, n_decodes: Number) -> StepLoad:
    """An iteration that reads prompts, less what the prefix cache holds, and decodes."""
    fresh = case.input_tokens - case.cached_tokens
    return StepLoad(
        n_prompts * fresh,
        # Fresh tokens see all that is cached and, on average, half of themselves.
        case.cached_tokens + 0.5 * fresh,
        n_prompts,
        n_decodes,
        _mean_context(case),
        case.checked_tokens,
        case.is_balanced,
    )


def decode_token_s(
    work: StepWork, k: StepConstants, case: ServingCase, n_decodes: Number
) -> Number:
    """Time per token while iterations only decode."""
    return step_time_s(work, k, mixed_load(case, 0.0, n_decodes)) / case.gained_tokens


def prefill_s(
    work: StepWork, k: StepConstants, case: ServingCase, n_prompts: Number = ONE
) -> Number:
    """An iteration that only reads whole prompts."""
    return step_time_s(work, k, mixed_load(case, n_prompts, 0.0))


def _mean_context(case: ServingCase) -> Number:
    # Cache reads are linear in the context, so the mean stands for the whole answer.
    return case.input_tokens + 0.5 * case.output_tokens


def mixed_extra_s(work: StepWork, k: StepConstants, case: ServingCase, n_decodes: Number) -> Number:
    """What one prompt adds to the iterations it rides in."""
    with_prompt = step_time_s(work, k, mixed_load(case, ONE, n_decodes))
    return with_prompt - step_time_s(work, k, mixed_load(case, 0.0, n_decodes))


def static_batch(work: StepWork, k: StepConstants, r: RegimeConstants, case: ServingCase) -> Served:
    """One batch from start to end; what the cache cannot hold runs as further waves."""
    running = lesser(case.n_sequences, n_held(work, r, case))
    n_waves = case.n_sequences / running
    first_s = prefill_s(work, k, case, running) + r.start_s
    tpot_s = decode_token_s(work, k, case, running)
    rest = greater(case.output_tokens - 1.0, 0.0)
    e2e_s = n_waves * (first_s + rest * tpot_s)
    rate = case.n_sequences * case.output_tokens / e2e_s
    return Served(rate, n_waves * first_s, tpot_s, e2e_s, running)


def max_load(work: StepWork, k: StepConstants, r: RegimeConstants, case: ServingCase) -> Served:
    """All requests wait; as many run as there is room for, the last wave with what is left."""
    resident = n_held(work, r, case)
    running = lesser((resident**-8.0 + r.batch_limit**-8.0) ** -0.125, case.n_sequences)
    tpot_s = steady_token_s(work, k, case, running)
    n_full = (case.n_sequences / running + 1e-9) // 1.0
    rest = greater(case.n_sequences - n_full * running, 0.0)
    rest_s = steady_token_s(work, k, case, greater(rest, ONE))
    whole_s = n_full * tpot_s + lesser(rest, ONE) * rest_s
    first_s = prefill_s(work, k, case)
    e2e_s = first_s + case.output_tokens * tpot_s
    return Served(case.n_sequences / whole_s, first_s, tpot_s, e2e_s, running)


def steady_token_s(work: StepWork, k: StepConstants, case: ServingCase, running: Number) -> Number:
    """Time per token with so many running; prompts come whole, as answers end one by one.

    Most iterations only decode, some read a prompt: it hides less of itself behind the weights'
    reading than if every iteration read an even share.
    """
    here = running / case.n_stages  # stages work on different parts of the batch at once
    n_prompts = here * case.gained_tokens / case.output_tokens
    n_lump = greater(n_prompts, ONE)
    decode_s = step_time_s(work, k, mixed_load(case, 0.0, here))
    read_s = step_time_s(work, k, mixed_load(case, n_lump, here))
    return (decode_s + n_prompts / n_lump * (read_s - decode_s)) / case.gained_tokens


def fixed_max_batch(
    work: StepWork, k: StepConstants, r: RegimeConstants, case: ServingCase
) -> Served:
    """Always `n_sequences` running; the time per token is that of an iteration without prompts."""
    running = lesser(case.n_sequences, n_held(work, r, case))
    decode_s = decode_token_s(work, k, case, running / case.n_stages)
    extra_s = r.interference_frac * running * mixed_extra_s(work, k, case, running)
    mean_s = decode_s + extra_s / case.output_tokens
    first_s = r.serve_start_s + prefill_s(work, k, case)
    e2e_s = first_s + case.output_tokens * mean_s
    return Served(running / mean_s, first_s, decode_s, e2e_s, running)


def serve_start_s(
    work: StepWork, k: StepConstants, r: RegimeConstants, case: ServingCase, step_s: Number
) -> Number:
    """What a served request loses before its own prompt counts: the larger the model, the more."""
    return lost_before_s(r, prefill_s(work, k, case), step_s)


def lost_before_s(r: RegimeConstants, prompt_s: Number, step_s: Number) -> Number:
    """The same where the time to read its prompt is known."""
    return r.serve_start_s + r.start_prompts * prompt_s + r.start_steps * step_s


class LoopTimes(NamedTuple):
    """What a closed loop's iterations cost."""

    n_running: Number
    decode_s: Number  # one token with all running
    prompt_s: Number  # what one prompt adds
    shared_s: Number  # what each of the prompts adds that come as fast as answers end
    step_s: Number  # one iteration without prompts


def loop_times(
    work: StepWork, k: StepConstants, r: RegimeConstants, case: ServingCase
) -> LoopTimes:
    """Iterations of `n_sequences` users, as many as the cache holds running."""
    running = lesser(case.n_sequences, n_held(work, r, case))
    here = running / case.n_stages
    decode_s = step_time_s(work, k, mixed_load(case, 0.0, here))
    mixed_s = step_time_s(work, k, mixed_load(case, ONE, here))
    prompt_s = greater(mixed_s - decode_s, 1e-9)
    n_lump = greater(here * case.gained_tokens / case.output_tokens, ONE)
    lump_s = step_time_s(work, k, mixed_load(case, n_lump, here)) - decode_s
    shared_s = greater(lump_s / n_lump, 1e-9)
    return LoopTimes(running, decode_s / case.gained_tokens, prompt_s, shared_s, decode_s)


def closed_loop_at(
    work: StepWork,
    k: StepConstants,
    r: RegimeConstants,
    case: ServingCase,
    wait_s: Number,
    times: LoopTimes,
) -> Served:
    """The same where its iterations are known."""
    first_s = serve_start_s(work, k, r, case, times.decode_s) + wait_s
    own_s = case.output_tokens * times.decode_s
    # Each user asks once per wait and answer: of the others' prompts, the share that the answer
    # has of both rides through it. The answer's length solves d = own + others·d / (first + d).
    others_s = r.interference_frac * greater(case.n_sequences - 1.0, 0.0) * times.shared_s
    half_s = 0.5 * (own_s + others_s - first_s)
    answer_s = half_s + (half_s * half_s + own_s * first_s) ** 0.5
    return paced_loop(case, first_s, answer_s / case.output_tokens, times.n_running)


def paced_loop(case: ServingCase, first_s: Number, tpot_s: Number, n_running: Number) -> Served:
    """What users get whose two latencies are known."""
    e2e_s = first_s + greater(case.output_tokens - 1.0, 0.0) * tpot_s
    # Little's law over all users, those that wait for room included.
    rate = lesser(case.n_sequences * case.output_tokens / e2e_s, n_running / tpot_s)
    return Served(rate, first_s, tpot_s, e2e_s, n_running)


def open_loop(work: StepWork, k: StepConstants, r: RegimeConstants, case: ServingCase) -> Served:
    """Poisson arrivals: as many run as the arrival rate keeps busy (Little's law), up to full."""
    full = max_load(work, k, r, case)
    running = ONE + 0.0 * full.n_running
    answered = case.output_tokens
    for _ in range(N_FIXED_POINT_ROUNDS):
        tpot_s = steady_token_s(work, k, case, running)
        wanted = greater(case.requests_per_s * answered * tpot_s, ONE)
        # Damped: the time per token grows with what runs, slower than in proportion.
        running = running**0.25 * lesser(wanted, full.n_running) ** 0.75
    tpot_s = steady_token_s(work, k, case, running)
    extra_s = greater(mixed_extra_s(work, k, case, running), 0.0)
    prompt_s = prefill_s(work, k, case)
    start_s = lost_before_s(r, prompt_s, tpot_s)
    busy = lesser(case.requests_per_s * extra_s, 0.95)
    wait_s = 0.5 * tpot_s + 0.5 * busy / (1.0 - busy) * extra_s
    first_s = start_s + prompt_s + wait_s
    rate = lesser(case.requests_per_s * answered, full.output_tokens_per_s)
    return Served(rate, first_s, tpot_s, first_s + answered * tpot_s, running)


REGIMES: dict[str, Any] = {
    "static_batch": static_batch,
    "max_load": max_load,
    "offline": max_load,
    "fixed_max_batch": fixed_max_batch,
    "poisson": open_loop,
    "prefill": static_batch,
}

"""Options of `gpuplan simulate` become the load to draw and the fleet to judge."""

from typing import TYPE_CHECKING

from gpuplan.cli.options import bytes_per_s
from gpuplan.cli.simulate.options import Batching, SimulateOptions
from gpuplan.cli.simulate.parse import (
    hours,
    kv_groups,
    lengths,
    objective,
    phases,
    seconds,
    warmup_s,
    whole_numbers,
)
from gpuplan.errors import InputError, Problem, one
from gpuplan.units import MONTH, MS

if TYPE_CHECKING:
    from gpuplan.domain.inference.performance import SpeculativeDecoding
    from gpuplan.domain.scenario.demand import LengthShape
    from gpuplan.domain.simulation.batching import BatchPolicy
    from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest, SimulateRequest
    from gpuplan.domain.traffic.drawn import DrawnLoad


def drawn_load(options: SimulateOptions) -> "DrawnLoad":
    """The load that the figures describe, whether or not they are enough."""
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadTerms

    named = options.length_distribution
    shape: LengthShape | None = named.value if named else None
    terms = LoadTerms(
        hourly_profile=hours(options.profile),
        growth_frac_per_month=options.growth,
        after_s=None if options.months is None else options.months * MONTH,
    )
    return DrawnLoad(
        law=options.arrivals.value if options.arrivals else None,
        requests_per_s=options.rate,
        burstiness_ratio=options.burstiness,
        phases=phases(options.phases),
        input=lengths(options.input_tokens, options.input_p95, shape),
        output=lengths(options.output_tokens, options.output_p95, shape),
        duration_s=seconds(options.duration, "--duration"),
        n_requests=options.n_requests,
        n_users=options.users,
        think_s=options.think_time_s,
        n_turns_mean=options.turns,
        terms=terms,
    )


def simulate_request(options: SimulateOptions) -> "SimulateRequest":
    """The fleet, and how to judge it."""
    from gpuplan.domain.requests.typed import request_of
    from gpuplan.domain.simulation.simulation import SimulateRequest

    limits = (options.slo_ttft_ms, options.slo_tpot_ms, options.slo_e2e_s)
    return request_of(
        SimulateRequest,
        options,
        n_replicas=options.replicas,
        cache_precision=options.kv_precision,
        scheduler=_engine(options),
        slo=objective(*limits, options.slo_percentile),
        warmup_s=warmup_s(options.warmup, is_steady=_is_steady(options)),
    )


def _engine(options: SimulateOptions) -> "EngineRequest":
    from gpuplan.domain.simulation.simulation import AdmissionRequest, EngineRequest

    return EngineRequest(
        max_sequences=options.max_num_seqs,
        max_batch_tokens=options.max_num_batched_tokens,
        n_blocks=options.kv_blocks,
        long_prefill_tokens=options.long_prefill_token_threshold,
        caches_prefixes=options.prefix_caching,
        scheduling=options.scheduling_policy,
        admission=AdmissionRequest(
            is_ahead=options.async_scheduling,
            reserves_prompt=options.reserve_full_isl,
            watermark_frac=options.watermark,
            chunks_prompts=options.enable_chunked_prefill,
            ignores_eos=options.ignore_eos,
            block_tokens=options.block_size,
            groups=kv_groups(options.kv_groups),
        ),
        drafts=_speculation(options),
        draws_acceptance=options.draw_acceptance,
        replica=_replica(options),
        batching=_batch_policy(options),
    )


def _speculation(options: SimulateOptions) -> "SpeculativeDecoding | None":
    from gpuplan.domain.inference.performance import SpeculativeDecoding

    n_tokens, rate = options.num_speculative_tokens, options.acceptance_rate
    if n_tokens is None and rate is None:
        return None
    if n_tokens is None or rate is None:
        lacking = "--acceptance-rate" if rate is None else "--num-speculative-tokens"
        fix = "give the number of draft tokens and their acceptance rate together"
        raise one(InputError, "simulate", lacking, "missing", fix)
    return SpeculativeDecoding(n_tokens=n_tokens, acceptance_frac=rate)


def _replica(options: SimulateOptions) -> "ReplicaRequest":
    from gpuplan.domain.inference.serving import LoraUse
    from gpuplan.domain.requests.requests import ReplicaSpan
    from gpuplan.domain.simulation.simulation import ReplicaRequest

    rank, n_adapters = options.lora_rank, options.loras or 1
    return ReplicaRequest(
        pp=options.pp,
        dp=options.dp,
        ep=options.ep,
        span=ReplicaSpan(network_bytes_per_s=bytes_per_s(options.node_gbit)),
        adapters=LoraUse(rank=rank, n_adapters=n_adapters, n_slots=options.max_loras)
        if rank
        else None,
        calibration=None if options.calibration is None else str(options.calibration),
        max_tokens=options.max_tokens,
        steps=_steps(options),
    )


def _steps(options: SimulateOptions) -> str | None:
    """Step times as typed, or the file that holds them."""
    if options.step_time is not None and options.step_table is not None:
        what = "conflicts with --step-time"
        raise one(InputError, "simulate", "--step-table", what, "give one of the two")
    if options.step_table is not None:
        return str(options.step_table)
    return options.step_time


def _batch_policy(options: SimulateOptions) -> "BatchPolicy | None":
    """How batches are formed; None where requests join and leave between iterations."""
    from gpuplan.domain.simulation.batching import BatchPolicy

    if options.batching is Batching.CONTINUOUS:
        _refuse_batch_options(options)
        return None
    if options.max_batch_size is None:
        raise one(InputError, "simulate", "--max-batch-size", "missing", "give e.g. 8")
    delay_ms = options.max_queue_delay_ms
    if options.batching is Batching.DYNAMIC and delay_ms is None:
        delay_ms = 0.0
    return BatchPolicy(
        max_batch=options.max_batch_size,
        max_delay_s=None if delay_ms is None else delay_ms * MS,
        preferred_sizes=whole_numbers(options.preferred_batch_size, "--preferred-batch-size"),
    )


def _refuse_batch_options(options: SimulateOptions) -> None:
    given = {
        "--max-batch-size": options.max_batch_size,
        "--max-queue-delay-ms": options.max_queue_delay_ms,
        "--preferred-batch-size": options.preferred_batch_size,
    }
    fix = "remove it, or add --batching static or dynamic"
    wrong = [
        Problem(flag, "conflicts with --batching continuous", fix)
        for flag, value in given.items()
        if value is not None
    ]
    if wrong:
        raise InputError("simulate", wrong)


def _is_steady(options: SimulateOptions) -> bool:
    """One law from first to last: what differs at the start is the empty fleet, and no more.

    Recordings, phases, days, growth and autoscaled fleets have no such part: a cut would throw
    away what the run is for.
    """
    moving = (options.profile, options.phases, options.fleet, options.scenario)
    is_moving = moving != (None,) * 4
    is_growing = options.growth != 0 and options.months is None
    return options.trace is None and not is_moving and not is_growing

"""LoRA adapters that an engine holds at once, in: a candidate; out: the same with its slots.

Slots take memory from the KV cache; a request whose adapter has none waits [vLLM-V1-scheduler].
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.serving import LoraSlots, LoraUse, ServingLayout
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.performance.memory.inference import lora_bytes
from gpuplan.studies.inference.admission import VLLM
from gpuplan.studies.sizing.evaluator import CandidateEvaluator
from gpuplan.units import GIB

SURE_DEVIATIONS = 3.0  # of the number that runs, and of the adapters that these ask for
WORTH_FRAC = 0.98  # of the best capacity: more slots are worth so much of it


def with_slots(candidate: Candidate, n_slots: int, rank: int) -> Candidate:
    """The candidate whose engine holds so many adapters."""
    assert candidate.settings is not None
    slots = LoraSlots(n_slots=n_slots, max_rank=rank)
    return replace(candidate, settings=replace(candidate.settings, lora=slots))


def with_enough_slots(
    candidate: Candidate, evaluator: CandidateEvaluator, limits: Sequence[LatencyLimit]
) -> Candidate:
    """The most slots that hardly take from what it carries, so that hardly a request waits.

    Fewer hold up the batch, more leave it less KV cache.
    """
    use, settings = evaluator.load.adapters, candidate.settings
    if use is None or settings is None:
        return candidate
    tried = [with_slots(candidate, n, use.rank) for n in _numbers(candidate, use)]
    carried = [_carried_per_s(each, evaluator, use, limits) for each in tried]
    if max(carried) <= 0:
        return tried[0]
    return [
        each
        for each, per_s in zip(tried, carried, strict=True)
        if per_s >= WORTH_FRAC * max(carried)
    ][-1]


def _numbers(candidate: Candidate, use: LoraUse) -> Iterator[int]:
    """Powers of two up to all; of stages and other schedulers, whose waits are not known, all."""
    is_known = candidate.engine is not None and candidate.engine.name == VLLM
    if is_known and candidate.layout.pp == 1:
        yield from (2**k for k in range((use.n_adapters - 1).bit_length()))
    yield use.n_adapters


def _carried_per_s(
    candidate: Candidate,
    evaluator: CandidateEvaluator,
    use: LoraUse,
    limits: Sequence[LatencyLimit],
) -> float:
    """Requests per second of one replica whose batch does not wait for slots; 0: nothing fits."""
    one = evaluator.prepared(candidate)
    if not one.fits:
        return 0.0
    most_s = [limit.limit_s for limit in limits if limit.metric in ("tpot", "itl")]
    n_slots = candidate.n_slots
    if n_slots < use.n_adapters:
        n = one.setup.n_engines * n_unhindered(use, n_slots, one.limits.max_sequences)
        most_s.append(float(one.token_s(np.array([n]))[0]) * (1 + 1e-9))
    return one.capacity_per_s(min(most_s)) if most_s else one.capacity_per_s()


def n_unhindered(use: LoraUse, n_slots: int, n_most: int) -> float:
    """Sequences that run on average, of which hardly ever one waits for a slot.

    As many as come together are spread over adapters at random: the distinct ones have the mean
    and deviation of occupied cells.
    """
    mean = np.arange(1.0, n_most + 1)
    n = use.request_frac * (mean + SURE_DEVIATIONS * np.sqrt(mean))
    empty, both = (1 - 1 / use.n_adapters) ** n, (1 - 2 / use.n_adapters) ** n
    spread = use.n_adapters * (empty + (use.n_adapters - 1) * both - use.n_adapters * empty**2)
    wanted = use.n_adapters * (1 - empty) + SURE_DEVIATIONS * np.sqrt(np.maximum(spread, 0.0))
    return float(mean[max(0, int(np.sum(wanted <= n_slots)) - 1)])


def adapter_lines(setup: ServingSetup) -> tuple[str, ...]:
    """How many adapters are where, and the memory that they take."""
    adapters, slots = setup.load.adapters, setup.settings.lora
    if adapters is None or slots is None:
        return ()
    resident = lora_bytes(setup.model, slots, setup.storage, layout=setup.layout)
    whole = replace(slots, n_slots=adapters.n_adapters)
    host = lora_bytes(setup.model, whole, setup.storage, layout=ServingLayout())
    return (
        f"{slots.n_slots} of {adapters.n_adapters} LoRA adapters (rank {slots.max_rank}) sit in "
        f"GPU memory at once (max_loras): {resident / GIB:.1f} GiB of each accelerator; all of "
        f"them take {host / GIB:,.1f} GiB of host memory (max_cpu_loras)",
    )

"""Workloads as nouns: the kind of work, its precisions, and what had to be assumed."""

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.scenario.workload import (
    Batch,
    Capacity,
    Generic,
    Serving,
    Training,
    TrainingMethod,
    Work,
    Workload,
)
from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.scenario.assumptions import LORA_RANK, Assumptions
from gpuplan.inputs.scenario.demand import arrivals, request, slo, steps
from gpuplan.inputs.scenario.terms import precision_names
from gpuplan.inputs.schema.nouns import noun_of, range_of
from gpuplan.inputs.schema.workload import (
    BatchInferenceSpec,
    CapacitySpec,
    FinetuningSpec,
    GenericWorkloadSpec,
    OnlineSpec,
    PlainWorkload,
    TrainingSpec,
)

RATES = ("output_tokens_per_s", "input_tokens_per_s", "requests_per_s", "samples_per_s")


def workload(spec: PlainWorkload, path: KeyPath, assumptions: Assumptions) -> Workload:
    """One workload; what had to be assumed is noted."""
    _note_precisions(spec, path, assumptions)
    kv_format = format_named(spec.kv_precision) if spec.kv_precision else None
    return noun_of(
        spec,
        Workload,
        work=_work(spec, path, assumptions),
        precisions=precision_names(spec.precision),
        cache_precision=kv_format.name if kv_format else None,
        capacities=tuple(_capacity(capacity) for capacity in spec.capacity),
    )


def _note_precisions(spec: PlainWorkload, path: KeyPath, assumptions: Assumptions) -> None:
    if spec.model is not None and spec.precision is None:
        why = "weights are never quantized unasked: quality is your call"
        what = "Precision of the weights"
        assumptions.add((*path, "precision"), "as published", why, what=what)
    if isinstance(spec, OnlineSpec | BatchInferenceSpec) and spec.kv_precision is None:
        why = "the default of engines: 16 bits, or what the model's configuration asks"
        what = "Precision of the KV cache"
        assumptions.add((*path, "kv_precision"), "as published", why, what=what)


def _work(spec: PlainWorkload, path: KeyPath, assumptions: Assumptions) -> Work:
    if isinstance(spec, OnlineSpec):
        return Serving(
            arrivals=arrivals(spec, (*path, "demand"), assumptions),
            request=request(spec.request, (*path, "request"), assumptions),
            slo=slo(spec.slo),
            max_context_tokens=spec.max_context_tokens,
        )
    if isinstance(spec, BatchInferenceSpec):
        shape = request(spec.request, (*path, "request"), assumptions)
        limit = spec.max_context_tokens
        return noun_of(spec.batch, Batch, request=shape, max_context_tokens=limit)
    if isinstance(spec, GenericWorkloadSpec):
        at = (*path, "work", "load_duration")
        return noun_of(spec.work, Generic, steps=steps(spec.work.load_duration, at, assumptions))
    method, rank = _method(spec.training, (*path, "training"), assumptions)
    return noun_of(spec.training, Training, method=method, lora_rank=rank)


def _capacity(spec: CapacitySpec) -> Capacity:
    given = next((name for name in RATES if getattr(spec, name) is not None), None)
    if given is None:
        return noun_of(spec, Capacity)
    metric, rate = given.removesuffix("_per_s"), range_of(getattr(spec, given))
    return noun_of(spec, Capacity, metric=metric, rate_per_s=rate)


def _method(
    spec: TrainingSpec, path: KeyPath, assumptions: Assumptions
) -> tuple[TrainingMethod, int | None]:
    if not isinstance(spec, FinetuningSpec):
        return "pretraining", None
    if spec.method == "full" or spec.lora_rank is not None:
        return spec.method, spec.lora_rank
    why = "a common rank; adapter memory grows with it and is small"
    assumptions.add((*path, "lora_rank"), LORA_RANK, why, what="Rank of the LoRA adapter")
    return spec.method, LORA_RANK

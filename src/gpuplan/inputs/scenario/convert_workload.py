"""From the file's units to base units: the workloads."""

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.scenario.workload import (
    Batch,
    Capacity,
    CapacityMetric,
    CheckpointPlan,
    DataPath,
    DeviceCopy,
    Generic,
    Layout,
    Loader,
    ModelRef,
    Serving,
    Staging,
    Storage,
    Training,
    TrainingMethod,
    Work,
    Workload,
)
from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.scenario.assumptions import LORA_RANK, Assumptions
from gpuplan.inputs.scenario.convert_demand import arrivals, request, slo, steps
from gpuplan.inputs.scenario.convert_site import precision_names, spread, times
from gpuplan.inputs.schema.data_path import DataPathSpec
from gpuplan.inputs.schema.workload import (
    AnyWorkload,
    BatchInferenceSpec,
    CapacitySpec,
    CheckpointSpec,
    FinetuningSpec,
    GenericSpec,
    GenericWorkloadSpec,
    LayoutSpec,
    ModelSpec,
    OnlineSpec,
    TrainingSpec,
)
from gpuplan.units import DAY, GB, GBIT, GFLOP, HOUR, KB, MB, MINUTE, TB

BILLION = 1e9
_RATES: dict[str, CapacityMetric] = {
    "output_tokens_per_s": "output_tokens",
    "input_tokens_per_s": "input_tokens",
    "requests_per_s": "requests",
    "samples_per_s": "samples",
}


def workload(spec: AnyWorkload, path: KeyPath, assumptions: Assumptions) -> Workload:
    """One workload; what had to be assumed is noted."""
    _note_precisions(spec, path, assumptions)
    cache = format_named(spec.kv_precision) if spec.kv_precision else None
    return Workload(
        name=spec.name,
        kind=spec.kind,
        work=_work(spec, path, assumptions),
        model=_model(spec.model) if spec.model else None,
        precisions=precision_names(spec.precision),
        cache_precision=cache.name if cache else None,
        priority=spec.priority,
        team=spec.team,
        capacities=tuple(_capacity(capacity) for capacity in spec.capacity),
        layout=_layout(spec.layout) if spec.layout else None,
        data_path=_data_path(spec.data_path) if spec.data_path else None,
    )


def _note_precisions(spec: AnyWorkload, path: KeyPath, assumptions: Assumptions) -> None:
    if spec.model is not None and spec.precision is None:
        why = "less precise weights are never chosen unasked: quality is your call"
        what = "Precision of the weights"
        assumptions.add((*path, "precision"), "as published", why, what=what)
    if isinstance(spec, OnlineSpec | BatchInferenceSpec) and spec.kv_precision is None:
        why = "what engines do unless told: 16 bits, or what the model's configuration asks"
        what = "Precision of the key-value cache"
        assumptions.add((*path, "kv_precision"), "as published", why, what=what)


def _work(spec: AnyWorkload, path: KeyPath, assumptions: Assumptions) -> Work:
    if isinstance(spec, OnlineSpec):
        return Serving(
            arrivals=arrivals(spec, (*path, "demand"), assumptions),
            request=request(spec.request, (*path, "request"), assumptions),
            slo=slo(spec.slo),
            max_context_tokens=spec.max_context_tokens,
        )
    if isinstance(spec, BatchInferenceSpec):
        return Batch(
            docs_per_s=times(spec.batch.docs_per_day, 1 / DAY),
            n_docs=spec.batch.docs,
            deadline_s=spec.batch.deadline_h * HOUR,
            request=request(spec.request, (*path, "request"), assumptions),
            max_context_tokens=spec.max_context_tokens,
        )
    if isinstance(spec, GenericWorkloadSpec):
        return _generic(spec.work, (*path, "work"), assumptions)
    return _training(spec.training, (*path, "training"), assumptions)


def _model(spec: ModelSpec) -> ModelRef:
    return ModelRef(
        name=spec.name,
        n_params=times(spec.params_b, BILLION),
        n_active_params=times(spec.active_params_b, BILLION),
    )


def _capacity(spec: CapacitySpec) -> Capacity:
    given = [name for name in _RATES if getattr(spec, name) is not None]
    return Capacity(
        accelerator=spec.accelerator,
        metric=_RATES[given[0]] if given else None,
        rate_per_s=spread(getattr(spec, given[0])) if given else None,
        is_per_node=spec.per == "node",
        mfu_frac=spread(spec.mfu_frac),
    )


def _layout(spec: LayoutSpec) -> Layout:
    return Layout(
        n_tensor=spec.tp,
        n_pipeline=spec.pp,
        n_expert=spec.ep,
        n_context=spec.cp,
        n_data=spec.dp,
        sharding=spec.sharding,
        recompute=spec.recompute,
        n_accumulation_steps=spec.accumulation_steps,
    )


def _training(spec: TrainingSpec, path: KeyPath, assumptions: Assumptions) -> Training:
    method, rank = _method(spec, path, assumptions)
    return Training(
        method=method,
        n_tokens=spec.tokens,
        n_samples=spec.samples,
        n_epochs=spec.epochs,
        sequence_tokens=spec.sequence_tokens,
        deadline_s=times(spec.deadline_days, DAY),
        global_batch_tokens=spec.global_batch_tokens,
        accelerator_batch_tokens=spec.tokens_per_accelerator_per_step,
        mfu_frac=spread(spec.mfu_frac),
        lora_rank=rank,
        checkpoint=_checkpoint(spec.checkpoint) if spec.checkpoint else None,
        accelerator_mtbf_s=times(spec.accelerator_mtbf_h, HOUR),
    )


def _method(
    spec: TrainingSpec, path: KeyPath, assumptions: Assumptions
) -> tuple[TrainingMethod, int | None]:
    if not isinstance(spec, FinetuningSpec):
        return "pretraining", None
    if spec.method == "full" or spec.lora_rank is not None:
        return spec.method, spec.lora_rank
    why = "a common rank; adapter memory grows with it and is small"
    assumptions.add((*path, "lora_rank"), LORA_RANK, why, what="Rank of the adapters")
    return spec.method, LORA_RANK


def _checkpoint(spec: CheckpointSpec) -> CheckpointPlan:
    return CheckpointPlan(
        state_bytes=times(spec.size_tb, TB),
        interval_s=times(spec.interval_min, MINUTE),
        write_bytes_per_s=spread(spec.write_gb_per_s, GB),
        restart_s=times(spec.restart_min, MINUTE),
    )


def _generic(spec: GenericSpec, path: KeyPath, assumptions: Assumptions) -> Generic:
    return Generic(
        n_accelerators=spec.accelerators,
        samples_per_s=spec.samples_per_s,
        n_samples=spec.samples,
        deadline_s=times(spec.deadline_h, HOUR),
        flop_per_sample=times(spec.gflop_per_sample, GFLOP),
        sample_activation_bytes=times(spec.activation_mb_per_sample, MB),
        is_training=spec.training,
        steps=steps(spec.load_duration, (*path, "load_duration"), assumptions),
        hourly_profile=tuple(spec.hourly_profile or ()),
    )


def _data_path(spec: DataPathSpec) -> DataPath:
    return DataPath(
        sample_bytes=times(spec.sample_kb, KB),
        samples_per_s_per_accelerator=spec.samples_per_s_per_accelerator,
        n_samples_per_file=spec.samples_per_file,
        cache_hit_frac=spec.cache_hit_frac,
        storage=_storage(spec),
        loader=_loader(spec),
        copy=_copy(spec),
        staging=_staging(spec),
    )


def _storage(spec: DataPathSpec) -> Storage | None:
    if spec.storage is None:
        return None
    return Storage(
        kind=spec.storage.kind,
        bytes_per_s=times(spec.storage.gb_per_s, GB),
        operations_per_s=spec.storage.iops,
        network_bytes_per_s=times(spec.storage.network_gbit_per_s, GBIT),
    )


def _loader(spec: DataPathSpec) -> Loader | None:
    if spec.loader is None:
        return None
    return Loader(
        n_cores=spec.loader.cores,
        samples_per_s_per_core=spec.loader.samples_per_s_per_core,
        n_workers=spec.loader.workers,
        is_on_accelerator=spec.loader.gpu_decode,
    )


def _copy(spec: DataPathSpec) -> DeviceCopy | None:
    if spec.copy_to_device is None:
        return None
    return DeviceCopy(
        n_batch_samples=spec.copy_to_device.batch_samples,
        sample_bytes=spec.copy_to_device.tensor_kb_per_sample * KB,
        is_pinned=spec.copy_to_device.pinned,
        is_overlapped=spec.copy_to_device.overlapped,
    )


def _staging(spec: DataPathSpec) -> Staging | None:
    if spec.staging is None:
        return None
    return Staging(
        dataset_bytes=spec.staging.dataset_tb * TB,
        link_bytes_per_s=spec.staging.link_gbit_per_s * GBIT,
        efficiency_frac=spec.staging.efficiency_frac,
        back_bytes=spec.staging.back_tb * TB,
    )

"""Whether a training job fits, as a document and as tables."""

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.fit import TrainingFit
from gpuplan.report.document import Document, pick, result_sheet
from gpuplan.report.formats import count, frac, gib, params
from gpuplan.report.prediction.fit import suggestion_documents, suggestion_table
from gpuplan.report.prediction.setup import layout_document
from gpuplan.report.table import pairs

PARTS = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "master_bytes": "master weights",
    "optimizer_bytes": "optimizer states",
    "adapters_bytes": "LoRA adapters and their states",
    "activations_bytes": "activations",
    "logits_bytes": "logits and loss",
    "gathered_bytes": "gathered layers (FSDP)",
    "temporary_bytes": "temporary buffers",
    "fragmentation_bytes": "fragmentation",
    "reserve_bytes": "driver and communication",
}


def training_sheet(answer: TrainingFit) -> Sheet:
    """The answer for one job, ready to show."""
    tight = ("it can run, but less than 8 % of the memory is left for fragmentation: try it first",)
    return result_sheet(
        _body(answer),
        [_memory_table(answer), suggestion_table(answer.suggestions)],
        head=_verdict(answer),
        remarks=[("Warnings:", tight if answer.is_tight else ())],
        assumptions=answer.assumptions,
        overrides=answer.overrides,
    )


def _body(answer: TrainingFit) -> Document:
    """Bytes are of the fullest accelerator."""
    job, peak = answer.job, answer.peak
    figures = {name: round(getattr(peak, name)) for name in ("value", "low", "high")}
    return {
        **pick(job.model, "n_params", "n_active_params", model="name"),
        "accelerator": job.accelerator.id,
        "n_accelerators": job.layout.n_accelerators,
        **pick(job.setup, "task", "sequence_tokens", "micro_batch"),
        "recompute": job.setup.execution.recompute,
        "layout": {**layout_document(job.layout), **pick(job.layout, "cp", "sharding")},
        **pick(answer, "fits", "is_tight", "fit_probability_frac", "max_micro_batch"),
        "usable_bytes": round(job.accelerator.memory.visible_bytes),
        "peak_bytes": {**figures, "tier": peak.tier},
        "least_bytes": round(answer.memory.least_bytes),
        "states_bytes": round(answer.memory.states_bytes),
        **{name: round(getattr(answer.memory, name)) for name in PARTS},
        "headroom_bytes": round(answer.headroom_bytes),
        "suggestions": suggestion_documents(answer.suggestions),
    }


def _verdict(answer: TrainingFit) -> str:
    job = answer.job
    where = f"{job.layout.n_accelerators} × {job.accelerator.name}"
    what = f"{job.setup.task} of {params(job.model.n_params)} parameters"
    asked = (
        f"micro-batch {count(job.setup.micro_batch)} × {count(job.setup.sequence_tokens)} tokens"
    )
    peak = f"peak {gib(answer.peak.value)} ({gib(answer.peak.low)} to {gib(answer.peak.high)})"
    if answer.fits:
        most = f"micro-batches up to {count(answer.max_micro_batch)}"
        fits = "FITS, barely," if answer.is_tight else "FITS"
        chance = f"probability of fitting {answer.fit_probability_frac:.0%}"
        return f"{fits} on {where}: {what}, {asked}, {peak}; {chance}; {most}"
    lack = gib(-answer.headroom_bytes)
    return f"DOES NOT FIT on {where}: {what}, {asked}, {peak}; lacks {lack} per accelerator"


def _memory_table(answer: TrainingFit) -> Table:
    visible = answer.job.accelerator.memory.visible_bytes
    sizes = [(label, getattr(answer.memory, name)) for name, label in PARTS.items()]
    sizes = [(label, size) for label, size in sizes if size]
    sizes.append(("peak", answer.peak.value))
    sizes.append(("of it the minimum", answer.memory.least_bytes))
    sizes.append(("visible memory", visible))
    rows = [(label, gib(size), frac(size / visible)) for label, size in sizes]
    return pairs("Memory of one accelerator at the peak", rows, "part", "size", "share")

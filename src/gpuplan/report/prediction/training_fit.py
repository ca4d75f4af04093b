"""A training fit as a document and as tables."""

from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.fit import TrainingFit
from gpuplan.report.formats import count, frac, gib, params
from gpuplan.report.provenance import (
    SCHEMA_VERSION,
    assumption_lines,
    assumptions_document,
    override_lines,
    overrides_document,
)

PARTS = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "master_bytes": "master weights",
    "optimizer_bytes": "optimizer states",
    "adapters_bytes": "adapters and their states",
    "activations_bytes": "activations",
    "logits_bytes": "logits and loss",
    "gathered_bytes": "layers gathered to work on",
    "temporary_bytes": "temporary buffers",
    "fragmentation_bytes": "fragmentation",
    "reserve_bytes": "driver and communication",
}


def training_sheet(answer: TrainingFit) -> Sheet:
    """The answer for one job, ready to show."""
    tables = [_memory_table(answer)]
    if answer.suggestions:
        tables.append(_suggestion_table(answer))
    tight = ("it can run, but the range of its peak reaches past the device: try it first",)
    return Sheet(
        document=training_document(answer),
        tables=tuple(tables),
        head=_verdict(answer),
        remarks=(
            ("Beware:", tight if answer.is_tight else ()),
            ("Assumed:", assumption_lines(answer.assumptions)),
            ("Overlay:", override_lines(answer.overrides)),
        ),
    )


def training_document(answer: TrainingFit) -> dict[str, Any]:
    """The machine-readable answer; bytes are of the fullest accelerator."""
    job = answer.job
    return {
        "schema_version": SCHEMA_VERSION,
        "model": job.model.name,
        "n_params": job.model.n_params,
        "n_active_params": job.model.n_active_params,
        "accelerator": job.accelerator.id,
        "n_accelerators": job.layout.n_accelerators,
        "task": job.setup.task,
        "sequence_tokens": job.setup.sequence_tokens,
        "micro_batch": job.setup.micro_batch,
        "recompute": job.setup.execution.recompute,
        "layout": {
            "tp": job.layout.tp,
            "pp": job.layout.pp,
            "cp": job.layout.cp,
            "ep": job.layout.ep,
            "dp": job.layout.dp,
            "sharding": job.layout.sharding,
        },
        "fits": answer.fits,
        "is_tight": answer.is_tight,
        "usable_bytes": round(job.accelerator.memory.visible_bytes),
        "peak_bytes": {
            "value": round(answer.peak.value),
            "low": round(answer.peak.low),
            "high": round(answer.peak.high),
            "tier": answer.peak.tier,
        },
        "least_bytes": round(answer.memory.least_bytes),
        "states_bytes": round(answer.memory.states_bytes),
        **{name: round(getattr(answer.memory, name)) for name in PARTS},
        "headroom_bytes": round(answer.headroom_bytes),
        "max_micro_batch": answer.max_micro_batch,
        "suggestions": [
            {
                "change": s.change,
                "how": s.how,
                "headroom_bytes": round(s.headroom_bytes),
                "caveat": s.caveat,
            }
            for s in answer.suggestions
        ],
        "assumptions": assumptions_document(answer.assumptions),
        "overrides": overrides_document(answer.overrides),
    }


def _verdict(answer: TrainingFit) -> str:
    job = answer.job
    where = f"{job.layout.n_accelerators}x {job.accelerator.name}"
    what = f"{job.setup.task} of {params(job.model.n_params)} parameters"
    asked = f"{count(job.setup.micro_batch)} x {count(job.setup.sequence_tokens)} tokens a step"
    peak = f"peak {gib(answer.peak.value)} ({gib(answer.peak.low)} to {gib(answer.peak.high)})"
    if answer.fits:
        most = f"micro-batches up to {count(answer.max_micro_batch)}"
        fits = "FITS, barely," if answer.is_tight else "FITS"
        return f"{fits} on {where}: {what}, {asked}, {peak}; {most}"
    lack = gib(-answer.headroom_bytes)
    return f"DOES NOT FIT on {where}: {what}, {asked}, {peak}; lacks {lack} a device"


def _memory_table(answer: TrainingFit) -> Table:
    visible = answer.job.accelerator.memory.visible_bytes
    sizes = [(label, getattr(answer.memory, name)) for name, label in PARTS.items()]
    rows = [(label, gib(size), frac(size / visible)) for label, size in sizes if size]
    rows.append(("peak", gib(answer.peak.value), frac(answer.peak.value / visible)))
    least = answer.memory.least_bytes
    rows.append(("of it, what it cannot do without", gib(least), frac(least / visible)))
    rows.append(("device, as a program sees it", gib(visible), frac(1.0)))
    return Table(
        title="Memory of one device at the peak",
        columns=("part", "size", "of device"),
        rows=tuple(rows),
        right=("size", "of device"),
    )


def _suggestion_table(answer: TrainingFit) -> Table:
    return Table(
        title="Any one of these makes it fit",
        columns=("change", "how", "then left", "beware"),
        rows=tuple((s.change, s.how, gib(s.headroom_bytes), s.caveat) for s in answer.suggestions),
        right=("then left",),
    )

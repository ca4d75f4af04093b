"""A fit as a document with stable keys, and as tables."""

from typing import Any

from gpuplan.domain.inference.fit import Fit, Survey
from gpuplan.domain.inference.serving import StorageFormats, Suggestion
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.formats import count, frac, gib, params, small_bytes
from gpuplan.report.provenance import (
    SCHEMA_VERSION,
    assumption_lines,
    assumptions_document,
    override_lines,
    overrides_document,
)

Document = dict[str, Any]


def fit_sheet(answer: Fit) -> Sheet:
    """The answer for one deployment, ready to show."""
    tables = [_model_table(answer), _memory_table(answer)]
    if answer.suggestions:
        tables.append(_suggestion_table(answer))
    return Sheet(
        document=fit_document(answer),
        tables=tuple(tables),
        head=verdict(answer),
        remarks=(
            ("Beware:", answer.cautions),
            ("Assumed:", assumption_lines(answer.assumptions)),
            ("Overlay:", override_lines(answer.overrides)),
        ),
    )


def survey_sheet(found: Survey) -> Sheet:
    """The answer over the whole catalog, ready to show."""
    refused = ", ".join(str(accelerator.id) for accelerator, _ in found.refused)
    return Sheet(
        document=_survey_document(found),
        tables=(_survey_table(found),),
        remarks=(
            ("Too small, even eight or more of them:", (refused,) if refused else ()),
            ("Assumed:", assumption_lines(found.assumptions)),
            ("Overlay:", override_lines(found.overrides)),
        ),
    )


def fit_document(answer: Fit) -> Document:
    """The machine-readable answer; bytes are of the fullest accelerator."""
    deployment, memory = answer.deployment, answer.memory
    return {
        "schema_version": SCHEMA_VERSION,
        **_model_figures(deployment.model, deployment.storage),
        "accelerator": deployment.accelerator.id,
        "n_accelerators": deployment.layout.n_accelerators,
        "layout": {
            "tp": deployment.layout.tp,
            "pp": deployment.layout.pp,
            "dp": deployment.layout.dp,
            "ep": deployment.layout.ep,
        },
        "precision": precision_name(deployment.storage),
        "kv_precision": deployment.storage.cache.name,
        "engine": deployment.engine.name,
        "context_tokens": deployment.load.context_tokens,
        "concurrency": deployment.load.n_sequences,
        "fits": answer.fits,
        "usable_bytes": round(memory.visible_bytes),
        "budget_bytes": round(memory.budget_bytes),
        "weights_bytes_per_accelerator": round(memory.weights_bytes),
        "activation_bytes": round(memory.activation_bytes),
        "communication_bytes": round(memory.communication_bytes),
        "context_bytes": round(memory.context_bytes),
        "graphs_bytes": round(memory.graphs_bytes),
        "lora_bytes": round(memory.lora_bytes),
        "kv_cache_bytes": round(memory.cache_bytes),
        "kv_bytes_per_sequence": round(memory.sequence_bytes),
        "kv_needed_bytes": round(memory.needed_bytes),
        "kv_cache_tokens": answer.cache_tokens,
        "headroom_bytes": round(answer.headroom_bytes),
        "max_concurrency": answer.max_concurrency,
        "max_context_tokens": answer.max_context_tokens,
        "suggestions": [_suggestion_document(s) for s in answer.suggestions],
        "cautions": list(answer.cautions),
        "assumptions": assumptions_document(answer.assumptions),
        "overrides": overrides_document(answer.overrides),
    }


def _model_figures(model: Model, storage: StorageFormats) -> Document:
    return {
        "model": model.name,
        "kind": model.kind,
        "architecture": model.architecture,
        "n_params": model.n_params,
        "n_active_params": model.n_active_params,
        "n_embedding_params": model.n_embedding_params,
        "n_mtp_params": model.n_mtp_params,
        "n_layers": model.main.n_layers,
        "model_context_tokens": model.max_context_tokens,
        "kv_bytes_per_token": _whole(model.kv_bytes_per_token(storage.cache)),
        "kv_bytes_per_token_16bit": _whole(model.kv_bytes_per_token(FORMATS["bf16"])),
        "indexer_bytes_per_token": _whole(model.indexer_bytes_per_token()),
        "state_bytes_per_sequence": _whole(model.state_bytes_per_sequence()),
    }


def _whole(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number


def _suggestion_document(suggestion: Suggestion) -> Document:
    return {
        "change": suggestion.change,
        "how": suggestion.how,
        "headroom_bytes": round(suggestion.headroom_bytes),
        "caveat": suggestion.caveat,
    }


def precision_name(storage: StorageFormats) -> str:
    """The format that most of the weights lie in."""
    return storage.quantized.name if storage.quantized else storage.base.name


def verdict(answer: Fit) -> str:
    """One line: fits or not, by how much, and how many at once."""
    where = f"{answer.deployment.layout.n_accelerators}x {answer.deployment.accelerator.name}"
    load = answer.deployment.load
    asked = f"{count(load.n_sequences)} x {count(load.context_tokens)} tokens"
    if answer.fits:
        return (
            f"FITS on {where}: {asked} leave {gib(answer.headroom_bytes)} a device; "
            f"up to {count(answer.max_concurrency)} such sequences at once"
        )
    if answer.headroom_bytes >= 0:
        limit = answer.deployment.model.max_context_tokens or 0
        return f"DOES NOT FIT: the model reads {count(limit)} tokens, {asked} were asked"
    return f"DOES NOT FIT on {where}: {asked} lack {gib(-answer.headroom_bytes)} a device"


def _model_table(answer: Fit) -> Table:
    """What the model is, before any hardware."""
    model, storage = answer.deployment.model, answer.deployment.storage
    rows = [
        ("parameters", params(model.n_params)),
        ("active for a token", params(model.n_active_params)),
        ("embedding tables", params(model.n_embedding_params)),
        ("layers", str(model.main.n_layers)),
        ("longest context", f"{count(model.max_context_tokens)} tokens")
        if model.max_context_tokens
        else ("longest context", "not stated"),
        (
            f"cache per token, {storage.cache.name}",
            f"{count(model.kv_bytes_per_token(storage.cache))} B",
        ),
        (
            f"cache per sequence of {count(answer.deployment.load.context_tokens)}",
            f"{small_bytes(answer.memory.sequence_bytes)} a device",
        ),
    ]
    if model.n_mtp_params:
        rows.insert(1, ("multi-token-prediction layers", params(model.n_mtp_params)))
    if model.state_bytes_per_sequence():
        rows.append(("state per sequence", small_bytes(model.state_bytes_per_sequence())))
    return Table(title=model.name, columns=("model", ""), rows=tuple(rows), right=("",))


def _memory_table(answer: Fit) -> Table:
    """The memory of the fullest device, part by part."""
    memory, engine = answer.memory, answer.deployment.engine
    parts = [
        (f"weights, {precision_name(answer.deployment.storage)}", memory.weights_bytes),
        ("activation peak", memory.activation_bytes),
        ("communication buffers", memory.communication_bytes),
        ("driver and runtime", memory.context_bytes),
        ("adapter slots", memory.lora_bytes),
        ("captured graphs", memory.graphs_bytes if engine.counts_graphs else 0.0),
        ("left for the cache", memory.cache_bytes),
    ]
    rows = [
        (name, gib(size), frac(size / memory.visible_bytes)) for name, size in parts if size != 0
    ]
    share = f"engine's share, {engine.memory_use_frac:.2f} of {gib(memory.visible_bytes)}"
    rows.append((share, gib(memory.budget_bytes), frac(engine.memory_use_frac)))
    return Table(
        title="Memory of one device",
        columns=("part", "size", "of device"),
        rows=tuple(rows),
        right=("size", "of device"),
    )


def _suggestion_table(answer: Fit) -> Table:
    """Single changes that would make it fit."""
    rows = tuple((s.change, s.how, gib(s.headroom_bytes), s.caveat) for s in answer.suggestions)
    return Table(
        title="Any one of these makes it fit",
        columns=("change", "how", "then left", "beware"),
        rows=rows,
        right=("then left",),
    )


def _survey_document(found: Survey) -> Document:
    """The machine-readable survey."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": found.model.name,
        "n_params": found.model.n_params,
        "n_active_params": found.model.n_active_params,
        "kv_bytes_per_token": _whole(found.model.kv_bytes_per_token()),
        "fits": [_survey_row(answer) for answer in found.fits],
        "refused": [{"accelerator": a.id, "reason": why} for a, why in found.refused],
        "assumptions": assumptions_document(found.assumptions),
        "overrides": overrides_document(found.overrides),
    }


def _survey_row(answer: Fit) -> Document:
    return {
        "accelerator": answer.deployment.accelerator.id,
        "n_accelerators": answer.deployment.layout.n_accelerators,
        "tp": answer.deployment.layout.tp,
        "weights_bytes_per_accelerator": round(answer.memory.weights_bytes),
        "usable_bytes": round(answer.memory.visible_bytes),
        "headroom_bytes": round(answer.headroom_bytes),
        "max_concurrency": answer.max_concurrency,
        "cautions": list(answer.cautions),
    }


def _survey_table(found: Survey) -> Table:
    """The fewest of each accelerator that hold the model, fewest devices first."""
    ordered = sorted(
        found.fits,
        key=lambda a: (a.deployment.layout.n_accelerators, a.memory.visible_bytes),
    )
    rows = tuple(
        (
            answer.deployment.accelerator.id,
            str(answer.deployment.layout.n_accelerators),
            gib(answer.memory.weights_bytes),
            gib(answer.headroom_bytes),
            count(answer.max_concurrency),
            count(answer.max_context_tokens),
        )
        for answer in ordered
    )
    return Table(
        title=f"{found.model.name}: fewest devices that hold it",
        columns=("accelerator", "devices", "weights", "left", "at once", "longest context"),
        rows=rows,
        right=("devices", "weights", "left", "at once", "longest context"),
    )

"""Whether a model fits for inference, as a document with stable keys, and as tables."""

from collections.abc import Iterator

from gpuplan.domain.inference.fit import Fit, Survey
from gpuplan.domain.inference.serving import Suggestion
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick, result_sheet
from gpuplan.report.formats import count, frac, gib, params, small_bytes, whole
from gpuplan.report.prediction.setup import layout_document, precision_name
from gpuplan.report.table import pairs, table


def fit_sheet(answer: Fit) -> Sheet:
    """The answer for one deployment, ready to show."""
    return result_sheet(
        _body(answer),
        [_model_table(answer), _memory_table(answer), suggestion_table(answer.suggestions)],
        head=verdict(answer),
        remarks=[("Warnings:", answer.cautions)],
        assumptions=answer.assumptions,
        overrides=answer.overrides,
    )


def survey_sheet(found: Survey) -> Sheet:
    """The answer over the whole catalog, ready to show."""
    refused = ", ".join(str(accelerator.id) for accelerator, _ in found.refused)
    body = {
        **pick(found.model, "n_params", "n_active_params", model="name"),
        "kv_bytes_per_token": whole(found.model.kv_bytes_per_token()),
        "fits": [_survey_row(answer) for answer in found.fits],
        "refused": [{"accelerator": a.id, "reason": why} for a, why in found.refused],
    }
    return result_sheet(
        body,
        [_survey_table(found)],
        remarks=[("Too small, even eight or more of them:", (refused,) if refused else ())],
        assumptions=found.assumptions,
        overrides=found.overrides,
    )


def _body(answer: Fit) -> Document:
    """Bytes are of the fullest accelerator."""
    deployment, memory = answer.deployment, answer.memory
    return {
        **_model_figures(answer),
        **pick(deployment, accelerator="accelerator.id", engine="engine.name"),
        "n_accelerators": deployment.layout.n_accelerators,
        "layout": layout_document(deployment.layout),
        "precision": precision_name(deployment.storage),
        "kv_precision": deployment.storage.cache.name,
        **pick(deployment.load, "context_tokens", concurrency="n_sequences"),
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
        **pick(answer, "max_concurrency", "max_context_tokens", "cautions"),
        "suggestions": suggestion_documents(answer.suggestions),
    }


def _model_figures(answer: Fit) -> Document:
    model, storage = answer.deployment.model, answer.deployment.storage
    counts = ("n_params", "n_active_params", "n_embedding_params", "n_mtp_params")
    return {
        **pick(model, "kind", "architecture", *counts, model="name", n_layers="main.n_layers"),
        "model_context_tokens": model.max_context_tokens,
        "kv_bytes_per_token": whole(model.kv_bytes_per_token(storage.cache)),
        "kv_bytes_per_token_16bit": whole(model.kv_bytes_per_token(FORMATS["bf16"])),
        "indexer_bytes_per_token": whole(model.indexer_bytes_per_token()),
        "state_bytes_per_sequence": whole(model.state_bytes_per_sequence()),
    }


def suggestion_documents(suggestions: tuple[Suggestion, ...]) -> list[Document]:
    """Single changes that would make it fit, for machines."""
    return [
        {**pick(s, "change", "how", "caveat"), "headroom_bytes": round(s.headroom_bytes)}
        for s in suggestions
    ]


def suggestion_table(suggestions: tuple[Suggestion, ...]) -> Table:
    """Single changes that would make it fit."""
    columns = {
        "change": lambda s: s.change,
        "how": lambda s: s.how,
        ">headroom then": lambda s: gib(s.headroom_bytes),
        "caveat": lambda s: s.caveat,
    }
    return table("Any one of these makes it fit", suggestions, columns)


def verdict(answer: Fit) -> str:
    """One line: fits or not, by how much, and how many sequences at once."""
    where = f"{answer.deployment.layout.n_accelerators} × {answer.deployment.accelerator.name}"
    load = answer.deployment.load
    requested = f"{count(load.n_sequences)} × {count(load.context_tokens)} tokens"
    if answer.fits:
        return (
            f"FITS on {where}: {requested} leave {gib(answer.headroom_bytes)} per accelerator; "
            f"up to {count(answer.max_concurrency)} such sequences at once"
        )
    if answer.headroom_bytes >= 0:
        limit = answer.deployment.model.max_context_tokens or 0
        return f"DOES NOT FIT: the context is {count(limit)} tokens, {requested} were asked for"
    return (
        f"DOES NOT FIT on {where}: {requested} lack {gib(-answer.headroom_bytes)} per accelerator"
    )


def _model_table(answer: Fit) -> Table:
    return pairs(answer.deployment.model.name, _model_rows(answer), "model", "")


def _model_rows(answer: Fit) -> Iterator[tuple[str, str]]:
    """What the model is, before any hardware."""
    model: Model = answer.deployment.model
    storage, context = answer.deployment.storage, answer.deployment.load.context_tokens
    longest = model.max_context_tokens
    yield "parameters", params(model.n_params)
    if model.n_mtp_params:
        yield "multi-token-prediction layers", params(model.n_mtp_params)
    yield "active parameters per token", params(model.n_active_params)
    yield "embedding tables", params(model.n_embedding_params)
    yield "layers", str(model.main.n_layers)
    yield "maximum context", f"{count(longest)} tokens" if longest else "not stated"
    kv_bytes = model.kv_bytes_per_token(storage.cache)
    yield f"KV cache per token, {storage.cache.name}", f"{count(kv_bytes)} B"
    per_sequence = f"{small_bytes(answer.memory.sequence_bytes)} per accelerator"
    yield f"KV cache per sequence of {count(context)}", per_sequence
    if model.state_bytes_per_sequence():
        yield "state per sequence", small_bytes(model.state_bytes_per_sequence())


def _memory_table(answer: Fit) -> Table:
    """The memory of the fullest accelerator, part by part."""
    memory, engine = answer.memory, answer.deployment.engine
    parts = [
        (f"weights, {precision_name(answer.deployment.storage)}", memory.weights_bytes),
        ("activation peak", memory.activation_bytes),
        ("communication buffers", memory.communication_bytes),
        ("driver and runtime", memory.context_bytes),
        ("LoRA adapter slots", memory.lora_bytes),
        ("CUDA graphs", memory.graphs_bytes if engine.counts_graphs else 0.0),
        ("left for the KV cache", memory.cache_bytes),
    ]
    rows = [(name, gib(size), frac(size / memory.visible_bytes)) for name, size in parts if size]
    share = f"engine's budget, {engine.memory_use_frac:.2f} of {gib(memory.visible_bytes)}"
    rows.append((share, gib(memory.budget_bytes), frac(engine.memory_use_frac)))
    return pairs("Memory of one accelerator", rows, "part", "size", "share")


def _survey_row(answer: Fit) -> Document:
    return {
        **pick(answer.deployment, accelerator="accelerator.id", tp="layout.tp"),
        "n_accelerators": answer.deployment.layout.n_accelerators,
        "weights_bytes_per_accelerator": round(answer.memory.weights_bytes),
        "usable_bytes": round(answer.memory.visible_bytes),
        "headroom_bytes": round(answer.headroom_bytes),
        **pick(answer, "max_concurrency", "cautions"),
    }


def _survey_table(found: Survey) -> Table:
    """The fewest of each accelerator that hold the model, fewest first."""
    columns = {
        "accelerator": lambda a: a.deployment.accelerator.id,
        ">count": lambda a: str(a.deployment.layout.n_accelerators),
        ">weights": lambda a: gib(a.memory.weights_bytes),
        ">headroom": lambda a: gib(a.headroom_bytes),
        ">max sequences": lambda a: count(a.max_concurrency),
        ">max context": lambda a: count(a.max_context_tokens),
    }
    ordered = sorted(
        found.fits, key=lambda a: (a.deployment.layout.n_accelerators, a.memory.visible_bytes)
    )
    return table(f"{found.model.name}: fewest accelerators that hold it", ordered, columns)

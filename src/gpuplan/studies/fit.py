"""Whether a model or a training job fits: memory by name, and the smallest changes that fit."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.fit import Deployment, Fit, Survey
from gpuplan.domain.inference.serving import EngineSettings, SequenceLoad, ServingLayout
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import FitRequest
from gpuplan.errors import InputError, Problem
from gpuplan.performance.memory.fit import fewest, measure, most_tp, suggest
from gpuplan.performance.memory.layouts import layout_problems
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import vllm_settings
from gpuplan.studies.naming import formats_named, model_named, with_overlays
from gpuplan.studies.support import support_problems

DEFAULT_CONTEXT_TOKENS = 8192


def fit(
    model: str,
    on: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> Fit:
    """Whether this model fits on this accelerator, and with what room to spare."""
    request = request or FitRequest()
    catalog = with_overlays(read_catalog(), overlays)
    known = model_named(model, store)
    choice = find_accelerator(on, catalog)
    deployment, assumed = _deployment(
        known, choice.accelerator, request, n_given=choice.n_accelerators or 1
    )
    layouts = layout_problems(known, deployment.storage, deployment.layout)
    engine = deployment.engine.name
    support = support_problems(choice.accelerator, deployment.storage, engine)
    if layouts or support:
        raise InputError("fit", [*layouts, *support])
    answer = dataclasses.replace(
        measure(deployment),
        assumptions=(*known.assumptions, *choice.assumptions, *assumed),
        overrides=catalog.overrides,
    )
    if answer.fits:
        return answer
    others = list(catalog.accelerators.values())
    found = tuple(suggest(answer, others, lambda here, other: _moved(here, other, request)))
    return dataclasses.replace(answer, suggestions=found)


def survey(
    model: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> Survey:
    """Where this model fits: of every accelerator on sale the fewest, or why none do."""
    request = request or FitRequest()
    catalog = with_overlays(read_catalog(), overlays).on_sale()
    known = model_named(model, store)
    fits, refused = [], []
    assumed: list[Assumption] = []
    for accelerator in catalog.accelerators.values():
        deployment, assumed = _deployment(known, accelerator, request, n_given=1)
        unable = support_problems(accelerator, deployment.storage, deployment.engine.name)
        found = None if unable else fewest(deployment)
        if unable:
            refused.append((accelerator, unable[0].what))
        elif found is None:
            refused.append((accelerator, f"not on {most_tp(accelerator)} or fewer"))
        else:
            fits.append(found)
    return Survey(
        model=known,
        fits=tuple(fits),
        refused=tuple(refused),
        assumptions=(*known.assumptions, *assumed),
        overrides=catalog.overrides,
    )


def _deployment(
    model: Model, accelerator: Accelerator, request: FitRequest, *, n_given: int
) -> tuple[Deployment, list[Assumption]]:
    formats = formats_named("fit", request.precision, request.cache_precision)
    storage, assumed_formats = storage_of(model, *formats)
    layout, assumed_layout = _serving_layout(request, n_given)
    load, assumed_load = _load(model, request)
    engine = _engine(accelerator, request)
    deployment = Deployment(
        model=model,
        accelerator=accelerator,
        storage=storage,
        layout=layout,
        engine=engine,
        load=load,
    )
    assumed = [*assumed_formats, *assumed_layout, *assumed_load]
    if request.memory_use_frac is None:
        assumed.append(_assumed_share(engine))
    return deployment, assumed


def _moved(deployment: Deployment, other: Accelerator, request: FitRequest) -> Deployment:
    engine = _engine(other, request)
    return dataclasses.replace(deployment, accelerator=other, engine=engine)


def _engine(accelerator: Accelerator, request: FitRequest) -> EngineSettings:
    return vllm_settings(
        accelerator,
        version=request.engine_version,
        memory_use_frac=request.memory_use_frac,
        max_sequences=request.max_sequences,
        lora=request.lora,
    )


def _assumed_share(engine: EngineSettings) -> Assumption:
    return assume(
        "engine memory",
        (
            f"{engine.memory_use_frac:.2f} of the visible memory, {engine.name}, "
            f"{engine.max_sequences} sequences and {engine.max_batch_tokens} tokens an iteration"
        ),
        "vLLM's defaults on this device; 0.92, graphs counted, from 0.21 on",
        "--gpu-memory-utilization, --engine-version, --max-num-seqs",
        "vLLM-defaults",
    )


def _serving_layout(request: FitRequest, n_given: int) -> tuple[ServingLayout, list[Assumption]]:
    tp, assumed = request.tp, []
    sizes = {"tp": tp, "pp": request.pp, "dp": request.dp, "ep": request.ep}
    wrong = [name for name, size in sizes.items() if size is not None and size < 1]
    if wrong:
        raise InputError(
            "fit", [Problem(f"--{name}", "below 1", "use 1 or more") for name in wrong]
        )
    if tp is None:
        tp = max(1, n_given // (request.pp * request.dp))
        if tp > 1:
            why = f"{n_given} accelerators were named"
            assumed = [assume("tensor parallel", str(tp), why, "--tp")]
    return ServingLayout(tp=tp, pp=request.pp, dp=request.dp, ep=request.ep), assumed


def _load(model: Model, request: FitRequest) -> tuple[SequenceLoad, list[Assumption]]:
    context, assumed = request.context_tokens, []
    if context is None:
        context = min(DEFAULT_CONTEXT_TOKENS, model.max_context_tokens or DEFAULT_CONTEXT_TOKENS)
        assumed = [
            assume(
                "context",
                f"{context} tokens",
                "prompt and response of a long chat turn",
                "--context",
            )
        ]
    return SequenceLoad(context_tokens=context, n_sequences=request.n_sequences), assumed

"""Predict by name: what the user typed -> a setup -> throughput, latency, power, with ranges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from gpuplan.calibration.inference.eras import engine_family, version_pair
from gpuplan.calibration.startup import start_constants, start_estimates
from gpuplan.candidates.propose import n_in_server
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.hardware.catalog import AcceleratorChoice
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import (
    USUAL_VERSIONS,
    EngineChoice,
    Regime,
    ServingLoad,
    ServingSetup,
)
from gpuplan.domain.inference.prediction import Prediction
from gpuplan.domain.inference.serving import (
    EngineSettings,
    LoraSlots,
    LoraUse,
    ServingLayout,
)
from gpuplan.domain.inference.startup import StartConditions
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Assumption, Estimate, assume
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.errors import InputError, Problem, one
from gpuplan.performance.memory.inference import setup_memory
from gpuplan.performance.memory.layouts import layout_problems
from gpuplan.performance.memory.storage import storage_of, stored_on
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.performance.serving.startup import startup_phases
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.naming import formats_named, model_named, with_overlays
from gpuplan.studies.power.serving import serving_power
from gpuplan.studies.support import support_problems

DEFAULT_INPUT_TOKENS = 1024
DEFAULT_OUTPUT_TOKENS = 256
# Regimes that say nothing without this number.
NEEDS = {
    "static_batch": "--concurrency",
    "fixed_max_batch": "--concurrency",
    "fixed_concurrency": "--concurrency",
    "poisson": "--rate",
}


def _of_text(model: Model, on: str) -> Model:
    """The model; InputError where it is a network that another verb predicts."""
    if model.kind == "encoder" or any(stack.role == "text" for stack in model.stacks):
        return model
    fix = f"gpuplan predict-network {model.name} --on {on}"
    what = f"is a {model.kind} network: it writes no text"
    raise one(InputError, "predict", model.name, what, fix)


def predict(
    model: str,
    on: str,
    request: PredictRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
    calibration: Path | None = None,
) -> Prediction:
    """Throughput, latency, power and memory of one configuration, each with a range."""
    refitted = _refitted(calibration) if calibration else None
    catalog = with_overlays(read_catalog(), overlays)
    choice = find_accelerator(on, catalog)
    named = _of_text(model_named(model, store), on)
    setup, assumed = setup_of(named, choice, request or PredictRequest())
    served = predict_inference(setup, calibration=refitted)
    context = max(1, int(setup.load.input_tokens + setup.load.output_tokens))
    memory = setup_memory(setup, context, max(1, round(served.n_running)))
    return Prediction(
        setup=setup,
        served=served,
        memory=memory,
        power=serving_power(setup, served),
        startup=startup(setup, memory.weights_bytes),
        assumptions=(*setup.model.assumptions, *choice.assumptions, *assumed, *served.assumptions),
        overrides=catalog.overrides,
    )


def _refitted(path: Path) -> InferenceCalibration:
    """Constants of the user's own runs; the fit is loaded only where there are any."""
    from gpuplan.studies.inference.user_calibration import read_user_calibration

    return read_user_calibration(path)


def startup(setup: ServingSetup, weights_bytes: float) -> Mapping[str, Estimate]:
    """A start with the image and the weights on the node's own disk, nothing compiled yet."""
    return startup_of(setup.model, setup.layout, weights_bytes)


def startup_of(model: Model, layout: ServingLayout, weights_bytes: float) -> Mapping[str, Estimate]:
    """The phases of a start by model and layout, with so many bytes of weights on each device."""
    start = StartConditions(
        weight_bytes=weights_bytes * layout.n_accelerators,
        n_layers=model.main.n_layers,
        tp=layout.tp,
    )
    return start_estimates(startup_phases(start, start_constants()))


def setup_of(
    model: Model, choice: AcceleratorChoice, request: PredictRequest
) -> tuple[ServingSetup, list[Assumption]]:
    """All that a prediction needs, with what was assumed; InputError where it cannot run."""
    formats = formats_named("predict", request.precision, request.cache_precision)
    storage, assumed_formats = storage_of(model, *formats)
    layout = _layout(request, choice.n_accelerators)
    engine, assumed_engine = _engine(request)
    problems = [
        *layout_problems(model, storage, layout),
        *support_problems(choice.accelerator, storage, engine.name),
    ]
    if problems:
        raise InputError("predict", problems)
    load, assumed_load = _load(request.load or LoadRequest())
    settings = engine_settings(
        engine.name, version_pair(engine.name, engine.version), choice.accelerator
    )
    setup = ServingSetup(
        model=model,
        accelerator=choice.accelerator,
        storage=stored_on(storage, choice.accelerator),
        layout=layout,
        engine=engine,
        settings=_limited(settings, request.max_sequences, load.adapters),
        load=load,
        n_replicas=float(request.n_replicas),
    )
    spans = _network(choice.accelerator, layout)
    return setup, [*assumed_formats, *assumed_engine, *assumed_load, *spans]


def _layout(request: PredictRequest, n_named: int) -> ServingLayout:
    tp = request.tp or max(1, n_named // (request.pp * request.dp * request.span.cp))
    return ServingLayout(
        tp=tp,
        pp=request.pp,
        dp=request.dp,
        ep=request.ep,
        cp=request.span.cp,
        network_bytes_per_s=request.span.network_bytes_per_s,
    )


def _network(accelerator: Accelerator, layout: ServingLayout) -> list[Assumption]:
    """A replica that is wider than a server, and nothing said of what joins servers."""
    n_server = n_in_server(accelerator)
    if layout.network_bytes_per_s is not None or layout.n_accelerators <= n_server:
        return []
    why = f"a server holds {n_server}, and no rate between servers was given"
    return [assume("links", "the bus of one host", why, "--node-gbit 3200")]


def _limited(
    settings: EngineSettings, max_sequences: int | None, adapters: LoraUse | None
) -> EngineSettings:
    if adapters is not None:
        slots = LoraSlots(n_slots=adapters.n_held, max_rank=adapters.rank)
        settings = replace(settings, lora=slots)
    return replace(settings, max_sequences=max_sequences) if max_sequences else settings


def _engine(request: PredictRequest) -> tuple[EngineChoice, list[Assumption]]:
    name = engine_family(request.engine)
    version = USUAL_VERSIONS.get(name, "")
    written = re.search(r"\d+(?:\.\d+)+", request.engine)  # "vLLM 0.11"
    requested = request.engine_version or (written[0] if written else None)
    if requested:
        choice = EngineChoice(name=name, version=requested)
        known, given = (version_pair(name, v) for v in (version, choice.version))
        if known is None or given is None or given <= known:
            return choice, []
        why = f"newer than any that is known here: rules and step times are those of {version}"
        return choice, [assume("engine", f"{name} {choice.version}", why, "--engine-version")]
    why = (
        "a current version; step times as of the newest that were measured"
        if version
        else "no measurement covers this engine: it is taken for an average one"
    )
    value = f"{name} {version}".strip()
    assumed = assume("engine", value, why, "--engine, --engine-version")
    return EngineChoice(name=name, version=version), [assumed]


def _load(request: LoadRequest) -> tuple[ServingLoad, list[Assumption]]:
    regime = _regime(request)
    needed = NEEDS.get(regime)
    given = {"--concurrency": request.n_concurrent, "--rate": request.requests_per_s}
    if needed and given[needed] is None:
        raise one(InputError, "predict", needed, f"missing for {regime}", f"add {needed}")
    lengths = request.input_tokens is not None and request.output_tokens is not None
    load = ServingLoad(
        regime=regime,
        input_tokens=float(request.input_tokens or DEFAULT_INPUT_TOKENS),
        output_tokens=float(request.output_tokens or DEFAULT_OUTPUT_TOKENS),
        n_sequences=None if request.n_concurrent is None else float(request.n_concurrent),
        requests_per_s=request.requests_per_s,
        cached_input_frac=request.prefix_hit_frac,
        adapters=request.adapters,
    )
    if lengths:
        return load, []
    value = f"{load.input_tokens:.0f} in, {load.output_tokens:.0f} out"
    why = "a prompt and a response of usual length"
    return load, [assume("tokens", value, why, "--input-tokens, --output-tokens")]


def _regime(request: LoadRequest) -> Regime:
    if request.regime is None:
        if request.requests_per_s is not None:
            return "poisson"
        return "max_load" if request.n_concurrent is None else "fixed_concurrency"
    for regime in get_args(Regime):
        if regime == request.regime:
            found: Regime = regime
            return found
    known = ", ".join(get_args(Regime))
    problem = Problem("--regime", f"got {request.regime!r}", f"use one of {known}")
    raise InputError("predict", [problem])

"""One load on several accelerators or in several precisions: predicted, ranked, explained."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.prediction import PhasePoint, Prediction, Roofline
from gpuplan.domain.inference.variants import (
    AcceleratorRanking,
    PrecisionComparison,
    PrecisionRow,
    RankedAccelerator,
)
from gpuplan.domain.model.precision import format_named, quality_risk
from gpuplan.domain.requests.requests import PredictRequest
from gpuplan.performance.memory.storage import storage_of
from gpuplan.studies.inference.configuration import predict
from gpuplan.studies.inference.roofline import roofline
from gpuplan.studies.naming import formats_named, model_named, with_overlays
from gpuplan.studies.support import support_problems

# What takes longest in the phase that takes longest → the line of the data sheet.
SPECIFICATIONS = {
    "compute": "tensor FLOP/s",
    "bandwidth": "memory bandwidth",
    "link": "interconnect",
    "host": "host and kernel launches",
}
MEMORY = "memory capacity"


def rank(
    model_name: str,
    accelerators: Sequence[str],
    request: PredictRequest,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> AcceleratorRanking:
    """The accelerators under this load, the fastest first, each with what decides its speed."""
    rows = [
        _ranked(model_name, name, request, overlays=overlays, store=store) for name in accelerators
    ]
    notes = dict.fromkeys(note for row in rows if row.found for note in row.found.assumptions)
    return AcceleratorRanking(
        model=model_named(model_name, store).name,
        rows=tuple(sorted(rows, key=lambda row: -row.tokens_per_s)),
        assumptions=tuple(notes),
    )


def _ranked(
    model_name: str,
    accelerator: str,
    request: PredictRequest,
    *,
    overlays: Sequence[Path],
    store: Path | None,
) -> RankedAccelerator:
    found, reason = _tried(model_name, accelerator, request, overlays=overlays, store=store)
    if found is None:
        return RankedAccelerator(
            accelerator=accelerator, found=None, decides="not supported", reason=reason
        )
    name = str(found.setup.accelerator.id)
    if not found.served.fits:
        reason = "its memory does not hold weights and KV cache"
        return RankedAccelerator(accelerator=name, found=None, decides=MEMORY, reason=reason)
    phases = roofline(model_name, accelerator, request, overlays=overlays, store=store)
    return RankedAccelerator(accelerator=name, found=found, decides=deciding(found, phases))


def deciding(found: Prediction, phases: Roofline) -> str:
    """The specification that limits the phase in which a request spends most of its work."""
    running = max(1.0, found.served.n_running)
    decodes = [point for point in phases.points if point.phase == "decode"]
    decode = min(decodes, key=lambda point: abs(point.n_tokens - running))
    prefill = next(point for point in phases.points if point.phase == "prefill")
    answer_s = found.setup.load.output_tokens * decode.step_s / decode.n_tokens
    longest: PhasePoint = prefill if prefill.step_s > answer_s else decode
    return SPECIFICATIONS[longest.limit]


def compare_precisions(
    model_name: str,
    accelerator: str,
    precisions: Sequence[str],
    request: PredictRequest,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> PrecisionComparison:
    """The same load in each precision: speed, memory and risk, the widest first."""
    tried = [
        (
            name,
            *_tried(
                model_name,
                accelerator,
                replace(request, precision=name),
                overlays=overlays,
                store=store,
            ),
        )
        for name in sorted(precisions, key=lambda name: -_bytes(name))
    ]
    known = [found for _, found, _ in tried if found is not None]
    return PrecisionComparison(
        model=model_named(model_name, store).name,
        accelerator=str(known[0].setup.accelerator.id) if known else accelerator,
        rows=tuple(_rows(tried)),
        assumptions=known[0].assumptions if known else (),
    )


def _rows(tried: Sequence[tuple[str, Prediction | None, str]]) -> Iterator[PrecisionRow]:
    widest = next((found for _, found, _ in tried if found is not None and found.served.fits), None)
    for name, found, reason in tried:
        form = format_named(name)
        runs = found is not None and found.served.fits
        ratio = None
        if runs and found is not None and widest is not None:
            most = widest.served.output_tokens_per_s.value
            ratio = found.served.output_tokens_per_s.value / most
        why = reason if found is None or runs else "weights and KV cache do not fit in memory"
        risk = "" if form is None else quality_risk(form)
        yield PrecisionRow(precision=name, found=found, speed_ratio=ratio, risk=risk, reason=why)


def _bytes(precision: str) -> float:
    form = format_named(precision)
    return form.stored_bytes if form else 0.0


def _tried(
    model_name: str,
    accelerator: str,
    request: PredictRequest,
    *,
    overlays: Sequence[Path],
    store: Path | None,
) -> tuple[Prediction | None, str]:
    """The prediction, or why this engine cannot run the format there."""
    choice = find_accelerator(accelerator, with_overlays(read_catalog(), overlays))
    formats = formats_named("predict", request.precision, request.cache_precision)
    storage, _ = storage_of(model_named(model_name, store), *formats)
    problems = support_problems(choice.accelerator, storage, request.engine)
    if problems:
        return None, "; ".join(problem.what for problem in problems)
    return predict(model_name, accelerator, request, overlays=overlays, store=store), ""

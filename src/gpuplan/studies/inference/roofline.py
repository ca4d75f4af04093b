"""Roofline: one configuration -> prefill and decode under the peaks of their accelerator."""

from collections.abc import Sequence
from pathlib import Path

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.prediction import PhasePoint, Roofline
from gpuplan.domain.requests.requests import PredictRequest
from gpuplan.performance.kernels.step import StepLoad
from gpuplan.performance.serving.roofline import phase_point
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.deployment import constants_for
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.naming import model_named, with_overlays

DECODE_BATCHES = (1, 8, 32, 128, 512)


def roofline(
    model: str,
    on: str,
    request: PredictRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> Roofline:
    """Where prefill and decode sit under the roofline, and what limits each.

    Prefill of one prompt, and decoding at batches from one up to what was asked.
    """
    catalog = with_overlays(read_catalog(), overlays)
    choice = find_accelerator(on, catalog)
    setup, assumed = setup_of(model_named(model, store), choice, request or PredictRequest())
    return Roofline(
        setup=setup,
        points=tuple(_points(setup)),
        assumptions=(*setup.model.assumptions, *choice.assumptions, *assumed),
        overrides=catalog.overrides,
    )


def _points(setup: ServingSetup) -> list[PhasePoint]:
    k, _ = constants_for(inference_calibration(), inference_labels(setup, benchmark=""))
    work = setup_work(setup)
    prompt, answer = setup.load.input_tokens, setup.load.output_tokens
    first = StepLoad(prompt, (prompt + 1) / 2, 1.0, 0.0, 0.0)
    requested = setup.load.n_sequences
    batches = sorted({*DECODE_BATCHES, *([int(requested)] if requested else [])})
    decodes = [StepLoad(0.0, 0.0, 0.0, float(n), prompt + answer / 2) for n in batches]
    return [
        phase_point("prefill", work, k, first),
        *(phase_point("decode", work, k, load) for load in decodes),
    ]

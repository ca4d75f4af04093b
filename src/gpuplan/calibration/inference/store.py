"""The stored fit: JSON in the package <-> nouns."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from gpuplan.calibration.inference.priors import CONSTANTS
from gpuplan.domain.calibration.constants import (
    FittedConstants,
    InferenceCalibration,
    LeftOut,
    Spread,
)

INFERENCE_FILE = "data/llm_inference.json"


@cache
def inference_calibration() -> InferenceCalibration:
    """The calibration that the package ships."""
    text = files("gpuplan.calibration").joinpath(INFERENCE_FILE).read_text("utf-8")
    return from_document(json.loads(text))


def to_document(calibration: InferenceCalibration) -> dict[str, object]:
    """As written: priors beside fitted values, so that a reader sees what moved."""
    fitted = calibration.constants
    return {
        "schema_version": 1,
        "version": calibration.version,
        "n_rows": fitted.n_rows,
        "sources": list(fitted.sources),
        "constants": {
            c.name: {
                "prior": c.value,
                "prior_log_sd": c.log_sd,
                "log_value": round(fitted.log_value[c.name], 5),
            }
            for c in fitted.constants
        },
        "deviations": {
            key: {label: round(value, 5) for label, value in sorted(labels.items())}
            for key, labels in sorted(fitted.deviation.items())
        },
        "spreads": {key: asdict(spread) for key, spread in calibration.spreads.items()},
        "known": {kind: sorted(labels) for kind, labels in calibration.known.items()},
        "left_out": {
            split: {key: asdict(errors) for key, errors in groups.items()}
            for split, groups in calibration.left_out.items()
        },
    }


def from_document(document: Mapping[str, object]) -> InferenceCalibration:
    """The nouns of a stored fit."""
    values = _mapping(document["constants"])
    fitted = FittedConstants(
        constants=CONSTANTS,
        log_value={name: _mapping(item)["log_value"] for name, item in values.items()},
        deviation={key: dict(_mapping(item)) for key, item in
                   _mapping(document["deviations"]).items()},
        n_rows=int(str(document["n_rows"])),
        sources=tuple(_strings(document["sources"])),
    )  # fmt: skip
    return InferenceCalibration(
        constants=fitted,
        spreads={key: Spread(**item) for key, item in _mapping(document["spreads"]).items()},
        known={
            kind: frozenset(_strings(labels))
            for kind, labels in _mapping(document["known"]).items()
        },
        left_out={
            split: {key: LeftOut(**item) for key, item in _mapping(groups).items()}
            for split, groups in _mapping(document["left_out"]).items()
        },
        version=str(document["version"]),
    )


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _strings(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return [str(item) for item in value]

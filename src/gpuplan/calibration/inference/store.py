"""The stored fit of inference: the package's JSON to nouns, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from gpuplan.calibration.tables import priors, read_constants
from gpuplan.domain.calibration.constants import (
    FittedConstants,
    InferenceCalibration,
    RangeRule,
)
from gpuplan.domain.calibration.validation import MetricErrors

INFERENCE_FILE = "llm_inference.json"


@cache
def inference_calibration() -> InferenceCalibration:
    """The calibration that the package ships."""
    return from_document(read_constants(INFERENCE_FILE))


def to_document(calibration: InferenceCalibration) -> dict[str, Any]:
    """The fit as it is stored: priors beside fitted values, so that a reader finds what moved."""
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
        "ranges": asdict(calibration.ranges),
        "known": {kind: sorted(labels) for kind, labels in calibration.known.items()},
        "left_out": {
            split: {key: asdict(errors) for key, errors in groups.items()}
            for split, groups in calibration.held_out.items()
        },
    }


def from_document(document: Mapping[str, Any]) -> InferenceCalibration:
    """The nouns of a stored fit."""
    values = {name: item["log_value"] for name, item in document["constants"].items()}
    return InferenceCalibration(
        constants=FittedConstants(
            constants=priors("inference"),
            log_value=values,
            deviation=document["deviations"],
            n_rows=document["n_rows"],
            sources=tuple(document["sources"]),
        ),
        ranges=RangeRule(**document["ranges"]),
        known={kind: frozenset(labels) for kind, labels in document["known"].items()},
        held_out={
            split: {key: MetricErrors(**item) for key, item in groups.items()}
            for split, groups in document["left_out"].items()
        },
        version=document["version"],
    )

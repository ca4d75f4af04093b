"""The stored fit of inference: the package's JSON to nouns."""

from collections.abc import Mapping
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

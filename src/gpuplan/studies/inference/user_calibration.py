"""A site's own calibration, in: the file that `gpuplan calibrate` wrote; out: its constants."""

import json
from pathlib import Path

from gpuplan.calibration.inference.site import (
    from_user_document,
)
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.runs.detect import MOST_BYTES
from gpuplan.calibration.runs.fields import unreadable
from gpuplan.domain.calibration.constants import InferenceCalibration


def read_user_calibration(
    path: Path, *, package: InferenceCalibration | None = None
) -> InferenceCalibration:
    """The calibration that `write_calibration` wrote; InputError where it is damaged or old."""
    content = file_content(path)
    try:
        document = json.loads(content[:MOST_BYTES])
    except (ValueError, RecursionError) as error:
        fix = "give what `gpuplan calibrate --out` wrote"
        raise unreadable(str(path), "JSON", "cannot be read", fix) from error
    return from_user_document(document, package or inference_calibration(), where=str(path))


def file_content(path: Path) -> bytes:
    """The bytes of the file, InputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        what = error.strerror or type(error).__name__
        raise unreadable(str(path), "file", what, "give a file that can be read") from error

"""Fit of other networks: measured batches in, measurements for the fit out, kind by kind."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import ABSENT
from gpuplan.domain.model.other import (
    Device,
    NetworkConstants,
    NetworkKind,
    SpeedBasis,
)
from gpuplan.units import GB, TFLOP

Floats = NDArray[np.float64]


# Boards whose published runs slow down as batches grow (A30: 1.6 to 4.5 times an A100's latency,
# twice at MLPerf): their heat is theirs, and must not make boards never measured look slow.
THROTTLED = ("A30",)
_FIELDS = tuple(NetworkConstants.__dataclass_fields__)
_ABSENT = {"scale_ratio": 1.0}


@cache
def devices() -> Mapping[str, tuple[str, Device]]:
    """Boards of the measured table: family and figures."""
    found = {}
    for row in read_rows("network_devices.csv"):
        peak = float(row["sixteen_tflop_per_s"]) * TFLOP
        board = Device(
            flop_per_s=peak,
            attention_flop_per_s=peak,
            bytes_per_s=float(row["memory_gb_per_s"]) * GB,
            power_w=float(row["limit_w"]),
        )
        found[row["device"]] = (row["family"], board)
    return found


def basis_of(kind: NetworkKind) -> SpeedBasis:
    """Whether this kind follows the mean of a board's figures, relative to which board."""
    names = {"encoder": "A100 (40GB)", "denoiser": "H100", "vision-cpu": "i9_10940x"}
    reference = devices()[names.get(kind, "RTX 3090")][1]
    return SpeedBasis(
        reference=reference,
        is_mean=kind not in ("encoder", "vision-cpu"),
        is_overlapped=kind == "denoiser",
    )


def base_name(model: str) -> str:
    """The model without the name of its weights: resnet50.a1_in1k is resnet50."""
    return model.split(".", maxsplit=1)[0]


def family_of(model: str) -> str:
    """Architecture family from a model's name: resnet50.a1_in1k is a resnet."""
    name = re.sub(r"^(tf|legacy|gluon|ig|swsl|ssl)_", "", base_name(model).lower())
    found = re.match(r"[a-z]+?v\d(?=_|$)|[a-z]+", name)
    return found.group(0) if found else name


def network_labels(
    model: str, stack: str, device_name: str, *, device_family: str = ""
) -> dict[str, str]:
    """What a batch's constants depend on; new names leave the common values."""
    return {
        "family": family_of(model),
        "mode": stack.split("-", maxsplit=1)[0],
        "stack": stack,
        "serving": stack if stack.startswith("served") else "kernels",
        "device": device_name,
        "throttled": device_name if device_name in THROTTLED else ABSENT,
        "device_family": device_family,
    }


def constants_of(values: Mapping[str, Any], kind: NetworkKind) -> NetworkConstants:
    """Constants by name; terms that a kind does not have weigh nothing."""
    found = {name: values.get(name, _ABSENT.get(name, 0.0)) for name in _FIELDS}
    if kind == "denoiser":  # one rate for both: the rows cannot tell them apart
        found["attention_ratio"] = found["compute_ratio"]
    return NetworkConstants(**found)

"""Fit of other networks, in: measured batches; out: constants per kind, family and software."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import fit as robust
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import Constant, Effect, FittedConstants, Labels
from gpuplan.domain.model.other import (
    Device,
    NetworkConstants,
    NetworkKind,
    NetworkWork,
    SpeedBasis,
)
from gpuplan.units import GB, GFLOP, MB, MS, TFLOP

Floats = NDArray[np.float64]
KINDS: tuple[NetworkKind, ...] = ("vision", "vision-training", "vision-cpu", "encoder", "denoiser")


class NetworkRow(NamedTuple):
    """One measured batch."""

    kind: NetworkKind
    source: str
    model: str
    stack: str
    device_name: str
    device: Device
    n_devices: int
    work: NetworkWork
    time_s: float
    power_w: float | None


# work, device, constants, basis, devices: all of columns -> seconds
Predict = Callable[[NetworkWork, Device, NetworkConstants, SpeedBasis, Floats], Floats]


def _effect(log_sd: float, *kinds: str) -> Effect:
    return Effect(kinds=kinds, log_sd=log_sd)


FAMILY_MODE = (_effect(0.5, "mode"), _effect(0.3, "family"), _effect(0.15, "family", "mode"))
CONSTANTS: Mapping[NetworkKind, tuple[Constant, ...]] = {
    "vision": (
        Constant(name="compute_ratio", value=0.7, log_sd=0.7, effects=FAMILY_MODE),
        Constant(name="traffic_ratio", value=8.0, log_sd=0.7, effects=FAMILY_MODE),
        Constant(name="scale_ratio", value=1.0, log_sd=0.1, effects=(_effect(0.1, "stack"),)),
    ),
    "vision-training": (
        Constant(name="compute_ratio", value=2.5, log_sd=0.5, effects=(_effect(0.25, "family"),)),
        Constant(name="traffic_ratio", value=32.0, log_sd=0.5, effects=(_effect(0.25, "family"),)),
        Constant(name="weight_ratio", value=100.0, log_sd=1.0),
        Constant(name="scale_ratio", value=1.0, log_sd=0.1, effects=(_effect(0.1, "stack"),)),
    ),
    "vision-cpu": (
        Constant(name="compute_ratio", value=2.5, log_sd=0.7, effects=(_effect(0.3, "family"),)),
        Constant(name="traffic_ratio", value=4.0, log_sd=0.7, effects=(_effect(0.3, "family"),)),
        Constant(name="weight_ratio", value=1.0, log_sd=0.5),
        Constant(name="launch_s", value=2e-3, log_sd=1.0),
    ),
    "encoder": (
        Constant(
            name="compute_ratio",
            value=1.5,
            log_sd=0.5,
            effects=(_effect(0.2, "stack"), _effect(0.2, "device"), _effect(1.0, "throttled")),
        ),
        Constant(
            name="attention_ratio", value=3.5, log_sd=0.5, effects=(_effect(1.0, "throttled"),)
        ),
        Constant(name="launch_s", value=4e-5, log_sd=0.5, effects=(_effect(0.2, "device"),)),
        Constant(name="scale_ratio", value=1.0, log_sd=0.05, effects=(_effect(0.5, "serving"),)),
    ),
    "denoiser": (
        Constant(name="compute_ratio", value=2.5, log_sd=0.7),
        Constant(name="traffic_ratio", value=150.0, log_sd=0.7),
        Constant(name="launch_s", value=1.5e-3, log_sd=1.0),
        Constant(name="split_ratio", value=0.1, log_sd=1.0),
        Constant(
            name="scale_ratio", value=1.0, log_sd=0.05, effects=(_effect(0.3, "device_family"),)
        ),
    ),
}
# Boards whose published runs slow down as batches grow (A30: 1.6 to 4.5 times an A100's latency,
# twice at MLPerf): their heat is theirs, and must not make boards never measured look slow.
THROTTLED = ("A30",)
_FIELDS = tuple(NetworkConstants.__dataclass_fields__)
_ABSENT = {"scale_ratio": 1.0}


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
    return SpeedBasis(reference=reference, is_mean=kind not in ("encoder", "vision-cpu"))


def base_name(model: str) -> str:
    """A model without the name of its weights: resnet50.a1_in1k is resnet50."""
    return model.split(".", maxsplit=1)[0]


def family_of(model: str) -> str:
    """Architecture family from a model's name: resnet50.a1_in1k is a resnet."""
    name = re.sub(r"^(tf|legacy|gluon|ig|swsl|ssl)_", "", base_name(model).lower())
    found = re.match(r"[a-z]+?v\d(?=_|$)|[a-z]+", name)
    return found.group(0) if found else name


def network_labels(
    model: str, stack: str, device_name: str, *, device_family: str = ""
) -> dict[str, str]:
    """What a batch's constants depend on; names never seen leave the common values."""
    return {
        "family": family_of(model),
        "mode": stack.split("-", maxsplit=1)[0],
        "stack": stack,
        "serving": stack if stack.startswith("served") else "kernels",
        "device": device_name,
        "throttled": device_name if device_name in THROTTLED else robust.ABSENT,
        "device_family": device_family,
    }


def read_network_rows(kind: NetworkKind | None = None) -> tuple[NetworkRow, ...]:
    """Measured batches of the package."""
    rows = read_rows("networks.csv")
    return tuple(_row(row) for row in rows if kind is None or row["kind"] == kind)


def _row(row: Mapping[str, str]) -> NetworkRow:
    board = devices()[row["device"]][1]
    device = Device(
        flop_per_s=board.flop_per_s * float(row["peak_ratio"]),
        attention_flop_per_s=board.attention_flop_per_s,
        bytes_per_s=board.bytes_per_s,
        power_w=board.power_w,
    )
    work = NetworkWork(
        flop=float(row["gflop"]) * GFLOP,
        attention_flop=float(row["attention_gflop"]) * GFLOP,
        activation_bytes=float(row["activation_mb"]) * MB,
        weight_bytes=float(row["weight_mb"]) * MB,
        n_kernels=float(row["n_kernels"]),
    )
    return NetworkRow(
        kind=row["kind"],  # type: ignore[arg-type]
        source=row["source"],
        model=row["model"],
        stack=row["stack"],
        device_name=row["device"],
        device=device,
        n_devices=int(row["n_devices"]),
        work=work,
        time_s=float(row["time_ms"]) * MS,
        power_w=float(row["power_w"]) if row["power_w"] else None,
    )


def labels_of(row: NetworkRow) -> Labels:
    """What a row's constants depend on."""
    family = devices()[row.device_name][0]
    return network_labels(row.model, row.stack, row.device_name, device_family=family)


def constants_of(values: Mapping[str, Any], kind: NetworkKind) -> NetworkConstants:
    """Constants by name; terms that a kind does not have weigh nothing."""
    found = {name: values.get(name, _ABSENT.get(name, 0.0)) for name in _FIELDS}
    if kind == "denoiser":  # one rate for both: the rows cannot tell them apart
        found["attention_ratio"] = found["compute_ratio"]
    return NetworkConstants(**found)


def fit_networks(rows: Sequence[NetworkRow], predict: Predict) -> FittedConstants:
    """Constants of one kind that these rows support; a model run often counts no more for it."""
    kind = rows[0].kind
    cols = robust.columns(CONSTANTS[kind], [labels_of(row) for row in rows])
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.model] = counts.get(row.model, 0) + 1
    weights = np.array([min(1.0, 30 / counts[row.model]) for row in rows])
    logs = np.log([row.time_s for row in rows])
    observed = robust.Observed(np.arange(len(rows)), logs, weights)
    times = _times(rows, predict)
    beta = robust.fit(cols, lambda values: np.log(times(values)), observed, n_rounds=40)
    sources = [row.source for row in rows]
    return robust.fitted(CONSTANTS[kind], cols, beta, n_rows=len(rows), sources=sources)


def log_errors(
    rows: Sequence[NetworkRow], fitted: FittedConstants, predict: Predict
) -> list[Floats]:
    """Log of predicted over measured, in order of rows."""
    known: dict[tuple[str, ...], dict[str, float]] = {}
    values: dict[str, list[float]] = {constant.name: [] for constant in fitted.constants}
    for row in rows:
        labels = labels_of(row)
        key = tuple(labels.values())
        if key not in known:
            known[key] = fitted.values(labels)
        for name, value in known[key].items():
            values[name].append(value)
    columns = {name: np.array(column) for name, column in values.items()}
    return [np.log(_times(rows, predict)(columns) / np.array([row.time_s for row in rows]))]


def _times(
    rows: Sequence[NetworkRow], predict: Predict
) -> Callable[[Mapping[str, Floats]], Floats]:
    kind = rows[0].kind
    work = NetworkWork(**_columns([row.work for row in rows], NetworkWork))
    device = Device(**_columns([row.device for row in rows], Device))
    n_devices = np.array([float(row.n_devices) for row in rows])
    basis = basis_of(kind)
    return lambda values: predict(work, device, constants_of(values, kind), basis, n_devices)


def _columns(things: Sequence[object], kind: Any) -> dict[str, Any]:
    names = kind.__dataclass_fields__
    return {name: np.array([getattr(thing, name) for thing in things]) for name in names}

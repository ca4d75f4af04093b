"""Fit of other networks: measured batches in, measurements for the fit out, kind by kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import Measurements, balanced_weights, one_per_row
from gpuplan.calibration.networks.fit import basis_of, constants_of, devices, network_labels
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import Labels
from gpuplan.domain.model.other import (
    Device,
    NetworkConstants,
    NetworkKind,
    NetworkWork,
    SpeedBasis,
)
from gpuplan.units import GFLOP, MB, MS

Floats = NDArray[np.float64]

KINDS: tuple[NetworkKind, ...] = ("vision", "vision-training", "vision-cpu", "encoder", "denoiser")


class NetworkRow(NamedTuple):
    """One measured batch of a network on its devices."""

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


ROWS_PER_MODEL = 30.0  # that a model counts for, however often it was run


N_ROUNDS = 40


def read_network_rows(kind: NetworkKind | None = None) -> tuple[NetworkRow, ...]:
    """The measured batches that the package ships."""
    rows = read_rows("networks.csv")
    boards = devices()
    return tuple(_row(row, boards) for row in rows if kind is None or row["kind"] == kind)


def _row(row: Mapping[str, str], boards: Mapping[str, tuple[str, Device]]) -> NetworkRow:
    board = boards[row["device"]][1]
    device = replace(board, flop_per_s=board.flop_per_s * float(row["peak_ratio"]))
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


def measurements(rows: Sequence[NetworkRow], predict: Predict) -> Measurements:
    """The times of these batches, of one kind of network, and the formula that predicts them."""
    kind = rows[0].kind
    work = NetworkWork(**_columns([row.work for row in rows]))
    device = Device(**_columns([row.device for row in rows]))
    n_devices = np.array([float(row.n_devices) for row in rows])
    basis = basis_of(kind)

    def log_times(values: Mapping[str, Floats]) -> Floats:
        times = predict(work, device, constants_of(values, kind), basis, n_devices)
        logs: Floats = np.log(times)
        return logs

    weight = balanced_weights([row.model for row in rows], ROWS_PER_MODEL)
    observed = one_per_row([row.time_s for row in rows], weight)
    sources = [row.source for row in rows]
    return Measurements([labels_of(row) for row in rows], log_times, observed, sources)


def _columns(things: Sequence[Any]) -> dict[str, Any]:
    names = things[0].__dataclass_fields__
    return {name: np.array([getattr(thing, name) for thing in things]) for name in names}

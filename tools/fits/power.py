"""Fit of power constants: measured draws with utilizations in, measurements for the fit out."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import Measurements, balanced_weights, one_per_row
from gpuplan.calibration.power import LEAST_BUSY_FRAC, step_busy_frac, waiting_busy_frac
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import Labels
from gpuplan.domain.hardware.power import PowerConstants, Utilization
from gpuplan.units import MS

Floats = NDArray[np.float64]
UTILIZATION = (
    "compute_frac",
    "weight_memory_frac",
    "other_memory_frac",
    "weight_bytes_per_param",
)
# Work that keeps a board busy but for the gaps; the rest only informs its own share.
BUSY_WORK = ("text", "diffusion")
WAITING_WEIGHT = 0.2
ROWS_PER_MODEL = 20.0  # that a model counts for, however often it was run


class PowerRow(NamedTuple):
    """One measured draw of one accelerator."""

    source: str
    accelerator: str
    family: str
    model: str
    work: str
    n_accelerators: int
    step_s: float  # between two launches of the whole batch
    use: Utilization
    power_w: float


# row, constants, busy share -> watts
Predict = Callable[[PowerRow, PowerConstants, float], float]


class CapRow(NamedTuple):
    """One run under a cap, relative to the same run at the limit."""

    gpu: str
    is_large_model: bool
    limit_w: float
    cap_w: float
    uncapped_w: float
    power_w: float
    slowdown: float


def read_power_rows() -> tuple[PowerRow, ...]:
    """The measured draws of the package."""
    return tuple(
        PowerRow(
            source=row["source"],
            accelerator=row["accelerator"],
            family=row["family"],
            model=row["model"],
            work=row["work"],
            n_accelerators=int(row["n_accelerators"]),
            step_s=float(row["step_ms"]) * MS,
            use=Utilization(**{name: float(row[name]) for name in UTILIZATION}),
            power_w=float(row["power_w"]),
        )
        for row in read_rows("power_load.csv")
    )


def read_cap_rows() -> tuple[CapRow, ...]:
    """The measured slowdowns under a power cap of the package."""
    return tuple(
        CapRow(
            gpu=row["gpu"],
            is_large_model=row["is_large_model"] == "1",
            **{name: float(row[name]) for name in CapRow._fields[2:]},
        )
        for row in read_rows("power_caps.csv")
    )


def labels_of(row: PowerRow) -> Labels:
    """What a row's constants depend on."""
    return {"family": row.family, "waits": row.work}


def busy_of(row: PowerRow, values: Mapping[str, float]) -> float:
    """Share of time in which kernels run."""
    if row.work not in BUSY_WORK:
        return waiting_busy_frac(values["busy_frac"], row.use.asked_frac)
    if row.work == "diffusion":
        return max(LEAST_BUSY_FRAC, 1.0 - values["layer_gap_s"] / row.step_s)
    return step_busy_frac(row.step_s, row.n_accelerators, values=values)


def constants_of(values: Mapping[str, float]) -> PowerConstants:
    """The constants by name; one factor of a family scales both terms."""
    return PowerConstants(
        memory_ratio=values["memory_ratio"] * values["load_ratio"],
        compute_ratio=values["compute_ratio"] * values["load_ratio"],
        unpack_ratio=values["unpack_ratio"],
    )


def measurements(rows: Sequence[PowerRow], predict: Predict) -> Measurements:
    """The draws of these rows and their formula; no model counts for more than so many rows."""
    weight = balanced_weights([row.model for row in rows], ROWS_PER_MODEL)
    weight *= [1.0 if row.work in BUSY_WORK else WAITING_WEIGHT for row in rows]

    def log_watts(values: Mapping[str, Floats]) -> Floats:
        found = []
        for i, row in enumerate(rows):
            mine = {name: float(column[i]) for name, column in values.items()}
            found.append(predict(row, constants_of(mine), busy_of(row, mine)))
        logs: Floats = np.log(found)
        return logs

    observed = one_per_row([row.power_w for row in rows], weight)
    sources = [row.source for row in rows]
    return Measurements([labels_of(row) for row in rows], log_watts, observed, sources)

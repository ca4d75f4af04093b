"""Fit of power constants, in: measured draws with utilizations; out: constants and residuals."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import fit as robust
from gpuplan.calibration.power.stored import LEAST_BUSY_FRAC, step_busy_frac
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import Constant, Effect, FittedConstants, Labels
from gpuplan.domain.hardware.power import PowerConstants, Utilization
from gpuplan.units import MS

Floats = NDArray[np.float64]
CONSTANTS = (
    Constant(name="memory_ratio", value=0.7, log_sd=0.5),
    Constant(name="compute_ratio", value=3.3, log_sd=0.5),
    Constant(name="unpack_ratio", value=1.5, log_sd=0.3),
    Constant(
        name="load_ratio",
        value=1.0,
        log_sd=0.02,
        effects=(
            Effect(kinds=("waits",), log_sd=0.1),
            Effect(kinds=("family", "waits"), log_sd=0.2),
        ),
    ),
    # Between two steps the board waits for the host, and for its peers where there are any.
    Constant(name="gap_s", value=1.5e-3, log_sd=0.5),
    Constant(name="peer_gap_s", value=1.5e-3, log_sd=0.5),
    Constant(name="layer_gap_s", value=5e-4, log_sd=0.7),  # of a denoiser's layer
    # Whatever waits for the host all the time has a share of its own.
    Constant(
        name="busy_frac",
        value=0.6,
        log_sd=0.3,
        effects=(Effect(kinds=("waits",), log_sd=0.3),),
        most=1.0,
    ),
)
# Work that keeps a board busy but for the gaps; the rest only informs its own share.
BUSY_WORK = ("text", "diffusion")
WAITING_WEIGHT = 0.2


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
    """Measured draws of the package."""
    return tuple(_power_row(row) for row in read_rows("power_load.csv"))


def _power_row(row: Mapping[str, str]) -> PowerRow:
    use = Utilization(
        compute_frac=float(row["compute_frac"]),
        weight_memory_frac=float(row["weight_memory_frac"]),
        other_memory_frac=float(row["other_memory_frac"]),
        weight_bytes_per_param=float(row["weight_bytes_per_param"]),
    )
    return PowerRow(
        source=row["source"],
        accelerator=row["accelerator"],
        family=row["family"],
        model=row["model"],
        work=row["work"],
        n_accelerators=int(row["n_accelerators"]),
        step_s=float(row["step_ms"]) * MS,
        use=use,
        power_w=float(row["power_w"]),
    )


def read_cap_rows() -> tuple[CapRow, ...]:
    """Measured slowdowns of the package."""
    return tuple(
        CapRow(
            gpu=row["gpu"],
            is_large_model=row["is_large_model"] == "1",
            limit_w=float(row["limit_w"]),
            cap_w=float(row["cap_w"]),
            uncapped_w=float(row["uncapped_w"]),
            power_w=float(row["power_w"]),
            slowdown=float(row["slowdown"]),
        )
        for row in read_rows("power_caps.csv")
    )


def labels_of(row: PowerRow) -> Labels:
    """What a row's constants depend on."""
    return {"family": row.family, "waits": row.work}


def busy_of(row: PowerRow, values: Mapping[str, float]) -> float:
    """Share of time in which kernels run."""
    if row.work not in BUSY_WORK:
        return values["busy_frac"]
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


def fit_power(rows: Sequence[PowerRow], predict: Predict) -> FittedConstants:
    """Constants that these rows support; every model counts alike, however often it was run."""
    cols = robust.columns(CONSTANTS, [labels_of(row) for row in rows])
    logs = np.log([row.power_w for row in rows])
    n_of: dict[str, int] = {}
    for row in rows:
        n_of[row.model] = n_of.get(row.model, 0) + 1
    weights = np.array([
        min(1.0, 20 / n_of[row.model]) * (1.0 if row.work in BUSY_WORK else WAITING_WEIGHT)
        for row in rows
    ])  # fmt: skip
    observed = robust.Observed(np.arange(len(rows)), logs, weights)

    def log_watts(values: Mapping[str, Floats]) -> Floats:
        found = []
        for i, row in enumerate(rows):
            mine = {name: float(column[i]) for name, column in values.items()}
            found.append(predict(row, constants_of(mine), busy_of(row, mine)))
        logs: Floats = np.log(found)
        return logs

    beta = robust.fit(cols, log_watts, observed)
    sources = [row.source for row in rows]
    return robust.fitted(CONSTANTS, cols, beta, n_rows=len(rows), sources=sources)


def log_errors(rows: Sequence[PowerRow], fitted: FittedConstants, predict: Predict) -> list[Floats]:
    """Log of predicted over measured, per row."""
    found = []
    for row in rows:
        values = fitted.values(labels_of(row))
        watts = predict(row, constants_of(values), busy_of(row, values))
        found.append(np.log([watts / row.power_w]))
    return found

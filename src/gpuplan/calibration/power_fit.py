"""Fit of power constants, in: measured draws with utilizations; out: constants and residuals."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import fit as robust
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration import Constant, Effect, FittedConstants, Labels
from gpuplan.domain.power import PowerConstants, Utilization

Floats = NDArray[np.float64]
BY_FAMILY = Effect(kinds=("family",), log_sd=0.2)
CONSTANTS = (
    Constant(name="memory_ratio", value=0.6, log_sd=0.5, effects=(BY_FAMILY,)),
    Constant(name="compute_ratio", value=3.0, log_sd=0.5, effects=(BY_FAMILY,)),
    Constant(name="unpack_ratio", value=1.0, log_sd=0.5),
    # Whatever waits for the host has a share of its own; text serving keeps a board busy.
    Constant(
        name="busy_frac",
        value=0.6,
        log_sd=0.3,
        effects=(Effect(kinds=("waits",), log_sd=0.3),),
        most=1.0,
    ),
)


class PowerRow(NamedTuple):
    """One measured draw of one accelerator."""

    source: str
    accelerator: str
    family: str
    model: str
    work: str
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
    return tuple(_power_row(row) for row in read_rows("power_llm.csv"))


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


def busy_of(row: PowerRow, fitted_frac: float) -> float:
    """Share of time in which kernels run: all of it, unless the work waits for the host."""
    return 1.0 if row.work == "text" else fitted_frac


def busy_frac_of(fitted: FittedConstants, work: str) -> float:
    """The fitted share of this kind of work."""
    return fitted.values({"family": "none", "waits": work})["busy_frac"]


def constants_of(value: Callable[[str], float]) -> PowerConstants:
    """The constants by name."""
    return PowerConstants(
        memory_ratio=value("memory_ratio"),
        compute_ratio=value("compute_ratio"),
        unpack_ratio=value("unpack_ratio"),
    )


def fit_power(rows: Sequence[PowerRow], predict: Predict) -> FittedConstants:
    """Constants that these rows support; every model counts alike, however often it was run."""
    cols = robust.columns(CONSTANTS, [labels_of(row) for row in rows])
    logs = np.log([row.power_w for row in rows])
    n_of = {m: sum(r.model == m for r in rows) for m in {r.model for r in rows}}
    weights = np.array([min(1.0, 12 / n_of[row.model]) for row in rows])
    observed = robust.Observed(np.arange(len(rows)), logs, weights)

    def log_watts(values: Mapping[str, Floats]) -> Floats:
        found = []
        for i, row in enumerate(rows):
            constants = PowerConstants(
                memory_ratio=float(values["memory_ratio"][i]),
                compute_ratio=float(values["compute_ratio"][i]),
                unpack_ratio=float(values["unpack_ratio"][i]),
            )
            found.append(predict(row, constants, busy_of(row, float(values["busy_frac"][i]))))
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
        busy = busy_of(row, values["busy_frac"])
        watts = predict(row, constants_of(values.__getitem__), busy)
        found.append(np.log([watts / row.power_w]))
    return found

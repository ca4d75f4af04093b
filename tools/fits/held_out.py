"""Fits of links, power, other networks and start-up, and the errors of rows held out of them."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from math import nan

import numpy as np
from numpy.typing import NDArray

from fits import links as links_fit
from fits import networks as networks_fit
from fits import power as power_fit
from fits import startup
from gpuplan.calibration.fit import MeasuredModel
from gpuplan.calibration.networks.stored import benchmark_rate
from gpuplan.calibration.power import CAP_CURVES
from gpuplan.calibration.residuals import (
    Spread,
    clustered_spread,
    held_out_errors,
    is_inside,
    score,
    spread_of,
)
from gpuplan.calibration.tables import priors, read_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.hardware.links import LinkModel
from gpuplan.domain.hardware.power import PowerConstants
from gpuplan.domain.model.other import (
    Device,
    NetworkConstants,
    NetworkKind,
    NetworkWork,
    SpeedBasis,
)
from gpuplan.performance import collectives, other_networks, power
from gpuplan.performance.kernels import curves
from gpuplan.studies.networks.speech import board_figures

Floats = NDArray[np.float64]
Folds = Mapping[Hashable, Floats]
FEW_GROUPS = 20


def score_folds(folds: Folds, *, are_lots: bool = False) -> MetricErrors:
    """The errors of all folds together, with the coverage of ranges drawn from the other folds.

    Folds drawn by lot hold many models each, which do not err together.
    """
    coverage = outer_coverage(folds) if are_lots else outer_coverage(folds, spread_across)
    return score(np.concatenate(list(folds.values())), coverage)


def collective_times_s(group: links_fit.Group, inner: LinkModel, outer: LinkModel) -> Floats:
    """The predicted times of a group of measured messages."""
    sizes, n = group.message_bytes, group.n_per_node
    if group.op == "alltoall":
        return _curve_times_s(sizes, collectives.all_to_all_curve(n, inner))
    if group.op in ("all_gather", "reduce_scatter"):
        return _curve_times_s(sizes, collectives.all_gather_curve(n, inner))
    if group.n_nodes == 1:
        terms = collectives.all_reduce_terms(n, inner)
        return np.asarray(curves.quickest_time_s(sizes, terms))
    levels, time_s = ((n, inner), (group.n_nodes, outer)), collectives.hierarchical_time_s
    return np.array([time_s(collectives.all_reduce_time_s, m, *levels) for m in sizes.tolist()])


def _curve_times_s(sizes: Floats, curve: curves.Curve) -> Floats:
    return np.asarray(curves.curve_time_s(sizes, curve))  # type: ignore[arg-type]


def link_groups() -> tuple[links_fit.Group, ...]:
    """The groups of the link fit: the cube mesh of V100 is no switch and is held out."""
    return tuple(group for group in links_fit.read_groups() if group.link != "nvlink2")


LINKS = MeasuredModel(
    constants=lambda: priors("links"),
    rows=link_groups,
    measured=lambda groups: links_fit.measurements(groups, collective_times_s),
)


def predicted_power_w(row: power_fit.PowerRow, constants: PowerConstants, busy: float) -> float:
    """The draw of a measured row's accelerator, from its utilization."""
    card = read_catalog().accelerators[AcceleratorId(row.accelerator)]
    return power.accelerator_power_w(card, replace(row.use, busy_frac=busy), constants)


POWER = MeasuredModel(
    constants=lambda: priors("power"),
    rows=power_fit.read_power_rows,
    measured=lambda rows: power_fit.measurements(rows, predicted_power_w),
)


def cap_errors(least_frac: float = 0.5) -> Folds:
    """The log errors of slowdowns by kind of run; the curves were set on these and other runs."""
    found: dict[Hashable, list[float]] = {"light": [], "saturated": []}
    for row in power_fit.read_cap_rows():
        if row.cap_w >= least_frac * row.limit_w:
            kind = "saturated" if row.is_large_model else "light"
            predicted = power.cap_slowdown(
                row.uncapped_w, row.cap_w, limit=row.limit_w, curve=CAP_CURVES[kind]
            )
            found[kind].append(float(np.log(predicted / row.slowdown)))
    return {kind: np.array(errors) for kind, errors in found.items()}


def network_times_s(
    work: NetworkWork,
    device: Device,
    constants: NetworkConstants,
    basis: SpeedBasis,
    n_devices: Floats,
) -> Floats:
    """The predicted times of columns of batches."""
    times = other_networks.network_time_s(
        work,
        device,
        constants=constants,
        basis=basis,
        n_devices=n_devices,  # type: ignore[arg-type]
    )
    return np.asarray(times)


def network_model(kind: NetworkKind) -> MeasuredModel[networks_fit.NetworkRow]:
    """One kind of network with its measured batches."""
    return MeasuredModel(
        constants=lambda: priors("networks", kind),
        rows=lambda: networks_fit.read_network_rows(kind),
        measured=lambda rows: networks_fit.measurements(rows, network_times_s),
        n_rounds=networks_fit.N_ROUNDS,
    )


def benchmark_folds() -> Folds:
    """The log errors of rates on each board, carried over from the other boards."""
    figures = board_figures()
    found: dict[Hashable, list[float]] = {}
    rows = [row for row in read_rows("network_benchmarks.csv") if row["accelerator"] in figures]
    for row in rows:
        card, name = row["accelerator"], row["benchmark"]
        others = {other: figure for other, figure in figures.items() if other != card}
        boards = {each["accelerator"] for each in rows if each["benchmark"] == name}
        if name.startswith("whisper") or len(boards) == 1:
            continue
        rate = benchmark_rate(
            name, figures[card], known=others, speed_ratio=other_networks.speed_ratio
        )
        found.setdefault(card, []).append(float(np.log(rate.value / float(row["rate_per_s"]))))
    return {card: np.array(errors) for card, errors in found.items()}


def startup_folds(phase: str, key: Callable[[startup.PhaseRow], Hashable]) -> Folds:
    """The log errors of one phase of starting, held out by key; none of a single fold."""
    rows = startup.read_phase_rows(phase)
    if len({key(row) for row in rows}) < 2:
        return {}
    return held_out_errors(rows, key, fit=startup.fit_phase, errors=startup.log_errors)


def spread_across(folds: Mapping[Hashable, Floats]) -> Spread:
    """The range of one more fold: of all rows where folds are many, wider where they are few."""
    errors = np.concatenate(list(folds.values()))
    if len(folds) >= FEW_GROUPS:
        return spread_of(errors)
    return clustered_spread(errors, [fold for fold, rows in folds.items() for _ in rows])


def outer_coverage(
    folds: Mapping[Hashable, Floats],
    spread: Callable[[Mapping[Hashable, Floats]], Spread] | None = None,
) -> float:
    """The share of rows inside a range drawn from the residuals of the other folds only."""
    drawn = spread or (lambda others: spread_of(np.concatenate(list(others.values()))))
    if len(folds) < 2:
        return nan
    inside = [
        is_inside(errors, drawn({other: of for other, of in folds.items() if other != fold}))
        for fold, errors in folds.items()
    ]
    return float(np.mean(np.concatenate(inside)))

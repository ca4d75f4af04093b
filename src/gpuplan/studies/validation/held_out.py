"""Fits of links, power, other networks and start-up, and the errors of rows held out of them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import startup
from gpuplan.calibration.fit import Measurements, fit_constants, log_errors
from gpuplan.calibration.links import fit as links_fit
from gpuplan.calibration.networks import fit as networks_fit
from gpuplan.calibration.networks.stored import benchmark_rate
from gpuplan.calibration.power import fit as power_fit
from gpuplan.calibration.power.stored import CAP_CURVES
from gpuplan.calibration.residuals import held_out_errors, outer_coverage, score, spread_across
from gpuplan.calibration.tables import read_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.calibration.constants import Constant, FittedConstants
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
from gpuplan.studies.networks.predict import board_figures

Floats = NDArray[np.float64]
Folds = Mapping[Hashable, Floats]
Row = TypeVar("Row")


def score_folds(folds: Folds, *, are_lots: bool = False) -> MetricErrors:
    """The errors of all folds together, with the coverage of ranges drawn from the other folds.

    Folds drawn by lot hold many models each, which do not err together.
    """
    coverage = outer_coverage(folds) if are_lots else outer_coverage(folds, spread_across)
    return score(np.concatenate(list(folds.values())), coverage)


def _folds(
    rows: Sequence[Row],
    key: Callable[[Row], Hashable],
    *,
    constants: Sequence[Constant],
    measured: Callable[[Sequence[Row]], Measurements],
    n_rounds: int = 25,
) -> Folds:
    """The log errors of rows, fold by fold, each predicted by a fit to the other folds."""
    return held_out_errors(
        rows,
        key,
        fit=lambda used: fit_constants(constants, measured(used), n_rounds=n_rounds),
        errors=lambda held_out, found: log_errors(found, measured(held_out)),
    )


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


def link_measurements(groups: Sequence[links_fit.Group]) -> Measurements:
    """Measured collectives with the formulas of the performance room."""
    return links_fit.measurements(groups, collective_times_s)


def fit_links(groups: Sequence[links_fit.Group]) -> FittedConstants:
    """Link constants from measured collectives."""
    return fit_constants(links_fit.CONSTANTS, link_measurements(groups))


def link_folds(key: Callable[[links_fit.Group], Hashable]) -> Folds:
    """The log errors of collectives, held out by key."""
    return _folds(link_groups(), key, constants=links_fit.CONSTANTS, measured=link_measurements)


def predicted_power_w(row: power_fit.PowerRow, constants: PowerConstants, busy: float) -> float:
    """The draw of a measured row's accelerator, from its utilization."""
    card = read_catalog().accelerators[AcceleratorId(row.accelerator)]
    return power.accelerator_power_w(card, replace(row.use, busy_frac=busy), constants)


def power_measurements(rows: Sequence[power_fit.PowerRow]) -> Measurements:
    """Measured draws with the formula of the performance room."""
    return power_fit.measurements(rows, predicted_power_w)


def fit_power(rows: Sequence[power_fit.PowerRow]) -> FittedConstants:
    """Power constants from measured draws."""
    return fit_constants(power_fit.CONSTANTS, power_measurements(rows))


def power_folds(key: Callable[[power_fit.PowerRow], Hashable]) -> Folds:
    """The log errors of power, held out by key; a key that names the work keeps kinds apart."""
    rows = power_fit.read_power_rows()
    return _folds(rows, key, constants=power_fit.CONSTANTS, measured=power_measurements)


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


def network_measurements(rows: Sequence[networks_fit.NetworkRow]) -> Measurements:
    """Measured batches with the formula of the performance room."""
    return networks_fit.measurements(rows, network_times_s)


def fit_networks(rows: Sequence[networks_fit.NetworkRow]) -> FittedConstants:
    """Constants of one kind of network from measured batches."""
    constants = networks_fit.CONSTANTS[rows[0].kind]
    return fit_constants(constants, network_measurements(rows), n_rounds=networks_fit.N_ROUNDS)


def network_folds(kind: NetworkKind, key: Callable[[networks_fit.NetworkRow], Hashable]) -> Folds:
    """The log errors of one kind of network, held out by key."""
    return _folds(
        networks_fit.read_network_rows(kind),
        key,
        constants=networks_fit.CONSTANTS[kind],
        measured=network_measurements,
        n_rounds=networks_fit.N_ROUNDS,
    )


def benchmark_folds() -> Folds:
    """The log errors of rates on each board, carried over from the other boards."""
    figures = board_figures()
    found: dict[Hashable, list[float]] = {}
    for row in read_rows("network_benchmarks.csv"):
        card, name = row["accelerator"], row["benchmark"]
        others = {other: figure for other, figure in figures.items() if other != card}
        is_alone = name.startswith("whisper")
        if card not in figures or is_alone:
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

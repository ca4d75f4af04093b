"""Errors of collectives, power, other networks and start-up on rows outside their fits."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import startup
from gpuplan.calibration.links import fit as links_fit
from gpuplan.calibration.networks import fit as other_networks_fit
from gpuplan.calibration.networks.stored import benchmark_rate
from gpuplan.calibration.power import fit as power_fit
from gpuplan.calibration.power.stored import CAP_CURVES
from gpuplan.calibration.residuals import (
    Score,
    left_out_errors,
    outer_coverage,
    score,
    spread_across,
)
from gpuplan.calibration.tables import read_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.calibration.constants import FittedConstants
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

Floats = NDArray[np.float64]
Folds = Mapping[Hashable, Floats]


def collective_times_s(group: links_fit.Group, inner: LinkModel, outer: LinkModel) -> Floats:
    """Predicted times of a group of measured messages; the formulas of the performance room."""
    sizes, n = group.message_bytes, group.n_per_node
    if group.op == "alltoall":
        return _column(sizes, collectives.all_to_all_curve(n, inner))
    if group.op in ("all_gather", "reduce_scatter"):
        return _column(sizes, collectives.all_gather_curve(n, inner))
    return np.array(
        [
            collectives.hierarchical_all_reduce_time_s(
                size, group.n_nodes, n, inner=inner, outer=outer
            )
            for size in sizes.tolist()
        ]
        if group.n_nodes > 1
        else collectives.quickest_time_s(sizes, collectives.all_reduce_terms(n, inner))  # type: ignore[arg-type]
    )


def _column(sizes: Floats, curve: collectives.Curve) -> Floats:
    return np.asarray(collectives.curve_time_s(sizes, curve))  # type: ignore[arg-type]


def fit_links(groups: Sequence[links_fit.Group]) -> FittedConstants:
    """Link constants from measured collectives."""
    return links_fit.fit_links(groups, collective_times_s)


def link_groups() -> tuple[links_fit.Group, ...]:
    """Groups that the fit rests on: the cube mesh of V100 is no switch and stays out."""
    return tuple(group for group in links_fit.read_groups() if group.link != "nvlink2")


def link_folds(key: Callable[[links_fit.Group], Hashable]) -> Folds:
    """Log errors of collectives, left out by key."""
    return left_out_errors(
        link_groups(),
        key,
        fit=fit_links,
        errors=lambda held, fitted: links_fit.log_errors(held, fitted, collective_times_s),
    )


def score_folds(folds: Folds, *, are_lots: bool = False) -> Score:
    """All folds together; the coverage is that of ranges drawn from the other folds.

    Folds drawn by lot hold many models each, which do not err together.
    """
    total = score(np.concatenate(list(folds.values())))
    held = outer_coverage(folds) if are_lots else outer_coverage(folds, spread_across)
    return total._replace(range_coverage=held)


def predicted_power_w(row: power_fit.PowerRow, constants: PowerConstants, busy: float) -> float:
    """Draw of a measured row's accelerator, from its utilization."""
    card = read_catalog().accelerators[AcceleratorId(row.accelerator)]
    return power.accelerator_power_w(card, replace(row.use, busy_frac=busy), constants)


def fit_power(rows: Sequence[power_fit.PowerRow]) -> FittedConstants:
    """Power constants from measured draws."""
    return power_fit.fit_power(rows, predicted_power_w)


def power_folds(key: Callable[[power_fit.PowerRow], Hashable]) -> Folds:
    """Log errors of power, left out by key; a key that names the work keeps kinds apart."""
    return left_out_errors(
        power_fit.read_power_rows(),
        key,
        fit=fit_power,
        errors=lambda held, fitted: power_fit.log_errors(held, fitted, predicted_power_w),
    )


def cap_errors(least_frac: float = 0.5) -> Folds:
    """Log errors of slowdowns by kind of run; the curves were set on these and other runs."""
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
    """Predicted times of columns of batches; the formula of the performance room."""
    times = other_networks.network_time_s(
        work,
        device,
        constants=constants,
        basis=basis,
        n_devices=n_devices,  # type: ignore[arg-type]
    )
    return np.asarray(times)


def fit_networks(rows: Sequence[other_networks_fit.NetworkRow]) -> FittedConstants:
    """Constants of one kind of network from measured batches."""
    return other_networks_fit.fit_networks(rows, network_times_s)


def network_folds(
    kind: NetworkKind, key: Callable[[other_networks_fit.NetworkRow], Hashable]
) -> Folds:
    """Log errors of one kind of network, left out by key."""
    return left_out_errors(
        other_networks_fit.read_network_rows(kind),
        key,
        fit=fit_networks,
        errors=lambda held, fitted: other_networks_fit.log_errors(held, fitted, network_times_s),
    )


def board_figures() -> Mapping[str, Device]:
    """Every board of the catalog at the precision that benchmarks use: 8-bit if it can."""
    found = {}
    for card in read_catalog().accelerators.values():
        peaks = card.peak_flop_per_s
        eight = next((name for name in ("int8", "fp8", "fp16", "bf16") if name in peaks), None)
        if eight is not None:
            found[str(card.id)] = other_networks.device_of(card, eight)
    return found


def benchmark_folds() -> Folds:
    """Log errors of rates on each board, carried over from the other boards."""
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
    """Log errors of one phase of starting, left out by key."""
    rows = startup.read_phase_rows(phase)
    if len({key(row) for row in rows}) < 2:
        return {}
    return left_out_errors(rows, key, fit=startup.fit_phase, errors=startup.log_errors)

"""Errors of collectives, power, other networks and start-up on rows outside their fits."""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import links_fit
from gpuplan.calibration.residuals import Score, left_out_errors, outer_coverage, score
from gpuplan.domain.calibration import FittedConstants
from gpuplan.domain.links import LinkModel
from gpuplan.performance import collectives

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


def score_folds(folds: Folds) -> Score:
    """All folds together; the coverage is that of ranges drawn from the other folds."""
    total = score(np.concatenate(list(folds.values())))
    return total._replace(range_coverage=outer_coverage(folds))

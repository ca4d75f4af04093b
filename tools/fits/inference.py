"""The calibration of serving as the package stores it: measured rows and a ledger in."""

from collections.abc import Sequence

import numpy as np

from fits.ranges import learned, least_halves, with_tails
from gpuplan.calibration.inference.ranges import Line, errors_by_split
from gpuplan.domain.calibration.constants import AT_LIMIT, SEEN, InferenceCalibration
from gpuplan.studies.validation.figures import TAIL_METRICS
from gpuplan.studies.validation.fit_inference import (
    Run,
    Study,
    fit_study,
    held_out_splits,
    known_labels,
)


def calibrate_inference(
    of: Study, *, version: str, ledger: Sequence[Line] = (), run: Run = map
) -> InferenceCalibration:
    """Constants from all rows; ranges from the ledger, percentiles from all rows held out.

    A ledger holds first predictions alone: the structure was chosen with older rows in sight, so
    that even those held out would flatter. They serve where there is none, for latencies at the
    limits of a benchmark by models held out, and as the least that a range may have.
    """
    everything = np.ones(len(of.observed.row), dtype=bool)
    first = fit_study(of, everything).constants
    # The first way from the priors stops short: TPOT was 3 % too long where this one is even.
    constants = fit_study(of, everything, near=first).constants
    splits = held_out_splits(of, constants, run)
    tails = [_of_cell(line) for line in splits["group"] if line.metric in TAIL_METRICS]
    tails += [_of_cell(line) for line in splits["model"] if is_bound(line)]
    means = [line for line in ledger or splits["group"] if is_mean(line)]
    least = least_halves([line for line in splits["model"] if is_mean(line)], means)
    ranges = with_tails(learned(means, log_least=least), learned(tails, TAIL_METRICS))
    return InferenceCalibration(
        constants=constants,
        ranges=ranges,
        known=known_labels(of, range(len(of.table.rows))),
        held_out=errors_by_split(splits, ranges),
        version=version,
    )


def _of_cell(line: Line) -> Line:
    """The line without its kind: too few publish such figures to tell kinds or novelty apart."""
    return line._replace(kind="", novelty=SEEN)


def is_bound(line: Line) -> bool:
    """A latency at the limits of a benchmark: its form is younger than the first predictions."""
    return line.regime == AT_LIMIT and line.metric in ("ttft_mean_ms", "tpot_mean_ms")


def is_mean(line: Line) -> bool:
    """A figure whose range rests on first predictions."""
    return line.metric not in TAIL_METRICS and not is_bound(line)

"""Utilization of a run over time: what its engines did, bin by bin."""

from typing import Any

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.sheet import Table
from gpuplan.domain.simulation.outcome import Outcome, StreamedOutcome

MINUTE_S = 60


def share(value: float) -> float:
    """A share without the dust of long sums, which may lift a whole above 1."""
    return round(float(value), 12)


def use_document(outcome: Outcome | StreamedOutcome, busy_frac: float) -> dict[str, Any]:
    """Means and bins; the last bin is over the part of it that the run covers."""
    use, span_s = outcome.use, outcome.totals.span_s
    n_bins = span_s / use.bin_s if span_s > 0 else 1.0

    def over_time(values: Floats) -> list[float]:
        return [share(value) for value in use.covered(values, span_s)]

    allocated = [1.0] * len(use.busy_frac)
    if use.allocated_frac is not None:
        allocated = use.allocated_frac.tolist()
    return {
        "allocated": sum(allocated) / len(allocated),
        "busy": share(busy_frac),
        "kv_cache": float(use.cache_frac.sum()) / n_bins,
        "compute": float(use.compute_frac.sum()) / n_bins,
        "bandwidth": float(use.bandwidth_frac.sum()) / n_bins,
        "bin_s": use.bin_s,
        "last_bin_s": use.last_s(span_s),
        "over_time": {
            "allocated": allocated,
            "busy": over_time(use.busy_frac),
            "kv_cache": over_time(use.cache_frac),
            "compute": over_time(use.compute_frac),
            "bandwidth": over_time(use.bandwidth_frac),
        },
    }


def use_table(outcome: Outcome | StreamedOutcome, n_most: int | None) -> Table:
    """Shares by bins; where few rows are wanted, means of several bins, to the run's end."""
    use, span_s = outcome.use, outcome.totals.span_s
    columns = ("from", "busy", "KV cache", "compute", "memory bandwidth")
    n_each = 1 if n_most is None else -(-len(use.busy_frac) // n_most)
    starts = np.arange(0, len(use.busy_frac), n_each)
    bin_s = use.bin_s * n_each
    lasts_s = np.minimum(bin_s, span_s - use.bin_s * starts) if span_s > 0 else bin_s
    parts = (use.busy_frac, use.cache_frac, use.compute_frac, use.bandwidth_frac)
    shares = [np.add.reduceat(part, starts) * use.bin_s / lasts_s for part in parts]
    rows = tuple(
        (_clock(b * bin_s, bin_s), *(f"{100 * values[b]:.0f} %" for values in shares))
        for b in range(len(starts))
    )
    title = f"Utilization over time, bins of {bin_s:,g} s"
    return Table(title=title, columns=columns, rows=rows, right=columns[1:])


def _clock(seconds: float, bin_s: float) -> str:
    """Hours and minutes; seconds too where bins are no whole minutes."""
    minutes = int(seconds // MINUTE_S)
    clock = f"{minutes // 60}:{minutes % 60:02d}"
    if bin_s % MINUTE_S == 0:
        return clock
    rest_s = seconds - MINUTE_S * minutes
    return f"{clock}:{rest_s:02.0f}" if bin_s % 1 == 0 else f"{clock}:{rest_s:06.3f}"

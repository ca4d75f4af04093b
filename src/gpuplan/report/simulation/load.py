"""The load of a run in figures: how much came, and how evenly."""

from typing import Any

from gpuplan.domain.simulation.simulation import NetworkSimulation, Simulation, StreamedSimulation
from gpuplan.domain.traffic.load import LoadSummary

Run = Simulation | StreamedSimulation | NetworkSimulation


def load_document(found: Run) -> dict[str, Any] | None:
    """For machines; None of runs that keep no request."""
    load = _load(found)
    if load is None:
        return None
    return {
        "requests_per_s": load.mean_requests_per_s,
        "busiest_minute_requests_per_s": load.peak_minute_requests_per_s,
        "busiest_hour_requests_per_s": load.peak_hour_requests_per_s,
        "gap_cv": load.gap_cv_ratio,
        "dispersion_per_minute": load.dispersion_ratio,
        "input_tokens_per_s": load.input_tokens_per_s,
        "output_tokens_per_s": load.output_tokens_per_s,
    }


def load_lines(found: Run) -> tuple[str, ...]:
    """One line: rate, busiest minute, and how bursty; Poisson has 1 and 1."""
    load = _load(found)
    if load is None or load.gap_cv_ratio is None:
        return ()
    line = (
        f"load: {load.mean_requests_per_s:,.2f} requests a second came, "
        f"{load.peak_minute_requests_per_s:,.2f} in the busiest minute; gaps deviate by "
        f"{load.gap_cv_ratio:.2f} of their mean"
    )
    if load.dispersion_ratio is not None:
        line += f", counts per minute have a dispersion of {load.dispersion_ratio:.2f}"
    return (f"{line} (Poisson: 1)",)


def _load(found: Run) -> LoadSummary | None:
    return found.load if isinstance(found, Simulation) else None

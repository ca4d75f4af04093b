"""What utilization alone can say, and where it cannot."""

from gpuplan.diagnose.bands import band_of
from gpuplan.diagnose.finding import Finding, percent, seen
from gpuplan.domain.telemetry.diagnosis import BandEdges, UseFigures

DEEPER = ("sm_active_frac", "tensor_active_frac", "kv_cache_frac")


def use_findings(use: UseFigures | None, edges: BandEdges) -> list[Finding]:
    """Peaks behind the mean, too little use, or full by the only counter that there is."""
    if use is None:
        return []
    mean, peak = band_of(use.mean_frac, edges), band_of(use.peak_frac, edges)
    rows = (
        seen("mean", percent(use.mean_frac), mean),
        seen("peak minute", percent(use.peak_frac), peak),
    )
    if mean in ("waste", "under-used") and peak in ("hot", "overload"):
        return [Finding("uneven_load", 0.8, rows)]
    if mean == "waste":
        return [Finding("under_used", 0.8, rows)]
    has_deeper = any(layer.metric in DEEPER for layer in use.layers)
    if mean == "overload" and not has_deeper and use.metric == "gpu_util_frac":
        return [Finding("full_by_name", 0.7, rows)]
    return []

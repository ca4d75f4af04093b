"""A batch of a network: its time, rate and work."""

from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import GFLOP, MS


def network_sheet(found: NetworkForecast) -> Sheet:
    """The forecast, ready to show."""
    rate = found.samples_per_s
    rows = [_row("one batch", "ms", found.batch_s, MS), _row("samples", "1/s", rate, 1.0)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "name": found.name,
        "kind": found.kind,
        "accelerator": found.accelerator.id,
        "batch": found.batch,
        "batch_s": _estimate(found.batch_s),
        "samples_per_s": _estimate(rate),
        "flop_per_sample": None
        if found.work is None
        else (found.work.flop + found.work.attention_flop) / found.batch,
        "assumptions": assumptions_document(found.assumptions),
    }
    work = ""
    if found.work is not None:
        each = (found.work.flop + found.work.attention_flop) / found.batch
        work = f", {each / GFLOP:,.3g} GFLOP a sample"
    return Sheet(
        document=document,
        tables=(
            Table(
                title="Predicted, with the range that holds 80 % of measurements",
                columns=("measure", "value", "low", "high", "unit", "tier"),
                rows=tuple(rows),
                right=("value", "low", "high"),
            ),
        ),
        head=f"{found.name} on {found.accelerator.name}, batch {found.batch}{work}",
        remarks=(("Assumed:", assumption_lines(found.assumptions)),),
    )


def _row(label: str, unit: str, estimate: Estimate, scale: float) -> tuple[str, ...]:
    figures = (estimate.value, estimate.low, estimate.high)
    return (label, *(f"{figure / scale:,.4g}" for figure in figures), unit, estimate.tier)


def _estimate(estimate: Estimate) -> dict[str, object]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "tier": estimate.tier,
        "sources": list(estimate.sources),
    }

"""A batch of a network: its time, rate and work."""

from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import pick, result_sheet, sourced
from gpuplan.report.prediction.setup import measures_table
from gpuplan.units import GFLOP, MS


def network_sheet(found: NetworkForecast) -> Sheet:
    """The forecast, ready to show."""
    work = found.work
    flop = None if work is None else (work.flop + work.attention_flop) / found.batch
    each = "" if flop is None else f", {flop / GFLOP:,.3g} GFLOP per sample"
    body = {
        **pick(found, "name", "kind", "batch", accelerator="accelerator.id"),
        "batch_s": sourced(found.batch_s),
        "samples_per_s": sourced(found.samples_per_s),
        "flop_per_sample": flop,
    }
    measures = [
        ("one batch", "ms", found.batch_s, MS),
        ("samples", "1/s", found.samples_per_s, 1.0),
    ]
    return result_sheet(
        body,
        [measures_table(measures)],
        head=f"{found.name} on {found.accelerator.name}, batch {found.batch}{each}",
        assumptions=found.assumptions,
    )

"""What a sized training run says of itself: work, layout, memory, network, stops."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuplan.domain.training.run import RunForecast
from gpuplan.domain.training.time import Goodput
from gpuplan.units import GIB

if TYPE_CHECKING:
    from gpuplan.studies.sizing.training.run import RunSizer

SHARDINGS = {
    "none": "replicated (DDP)",
    "zero1": "ZeRO-1 (distributed optimizer)",
    "zero2": "ZeRO-2",
    "zero3": "ZeRO-3 (FSDP)",
    "hsdp": "HSDP (sharded inside servers)",
}


def run_remarks(run: "RunSizer", found: RunForecast, lost: Goodput | None) -> Iterator[str]:
    """The run in sentences."""
    yield f"{run.job.flop:.3g} FLOP of the model, activation recomputation not counted"
    yield _layout_line(found)
    if run.given is not None:
        yield f"time counts by the MFU that was given, {run.given.mid:.0%}, not by that prediction"
    yield _memory_line(found)
    if found.forecast.step.n_accelerators > run.server.node.n_accelerators:
        source = run.server.node.fabric_source
        yield f"servers are joined by {run.server.node.fabric} ({source})"
    if lost and lost.goodput_frac is not None and lost.interval_s is not None:
        yield (
            f"goodput {lost.goodput_frac:.1%}, a checkpoint every {lost.interval_s / 60:.0f} "
            f"minutes of {lost.write_s:.0f} s"
        )


def _layout_line(found: RunForecast) -> str:
    columns = dict(found.columns)
    sizes = {name: int(columns[name]) for name in ("tp", "pp", "vp", "cp", "ep")}
    group = sizes["tp"] * sizes["pp"] * sizes["cp"]
    sizes["dp"] = int(columns["n_accelerators"]) // group
    spread = " ".join(f"{name.upper()}{n}" for name, n in sizes.items() if n > 1) or "one rank"
    forecast = found.forecast
    return (
        f"{columns['framework']}: {spread}, {SHARDINGS[columns['sharding']]}, micro-batch "
        f"{columns['micro_batch']}, global batch {columns['global_batch']}, recomputation "
        f"{columns['recompute']}: {forecast.step_s.value:.3g} s per step, MFU "
        f"{forecast.mfu_frac.value:.0%} with attention, the largest loss is {forecast.step.cause}"
    )


def _memory_line(found: RunForecast) -> str:
    has = found.fit.job.accelerator.memory.visible_bytes
    fit, tight = found.fit, ", tight: try it first" if found.fit.is_tight else ""
    least = fit.peak.scaled(fit.memory.least_bytes / fit.peak.value / GIB)
    return (
        f"memory: {least.value:.1f} GiB ({least.low:.1f} … {least.high:.1f}) of {has / GIB:.1f} "
        f"GiB per accelerator are needed at the peak, {fit.peak.value / GIB:.1f} with what the "
        f"allocator caches: fits with {fit.fit_probability_frac:.0%} probability{tight}"
    )

"""A training run as a document and as tables: step time, MFU, causes, goodput, length."""

from collections.abc import Iterator

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.fit import TrainingFit
from gpuplan.domain.training.run import RunForecast
from gpuplan.domain.training.time import Goodput
from gpuplan.report.document import Document, pick, plain, result_sheet
from gpuplan.report.formats import count, frac, gib, params
from gpuplan.report.prediction.setup import Measure, measures_table
from gpuplan.report.table import table
from gpuplan.units import DAY

GOODPUT = (
    "goodput_frac",
    "why_unknown",
    "interval_s",
    "write_s",
    "checkpoint_frac",
    "lost_work_frac",
    "restart_frac",
)
LEAST_SHARE = 0.0005  # of a step, to be shown


def run_sheet(found: RunForecast) -> Sheet:
    """The run, ready to show."""
    asked, forecast = dict(found.columns), found.forecast
    head = (
        f"{found.model.name} ({params(found.model.n_params)}) on "
        f"{asked.get('n_accelerators', '1')} × {asked.get('accelerator', '')}: "
        f"{forecast.step_s.value:.3g} s per step, "
        f"{count(forecast.tokens_per_s_per_accelerator.value)} tokens/s per accelerator"
    )
    return result_sheet(
        _body(found),
        [measures_table(_measures(found)), _parts_table(found)],
        head=head,
        remarks=[
            ("Memory:", (_memory_line(found.fit),)),
            ("Goodput:", _goodput_lines(found.goodput)),
        ],
        assumptions=forecast.assumptions,
    )


def _body(found: RunForecast) -> Document:
    forecast = found.forecast
    return {
        "asked": dict(found.columns),
        "n_params": found.model.n_params,
        **pick(forecast, "step_s", "tokens_per_s_per_accelerator", "mfu_frac"),
        **pick(forecast.step, "hfu_frac", "cause"),
        "parts_s": dict(forecast.step.parts_s),
        "run_s": plain(found.run_s),
        "wall_s": plain(found.wall_s),
        **pick(found.fit, "fits", "is_tight", "fit_probability_frac"),
        "peak_bytes": round(found.fit.peak.value),
        "headroom_bytes": round(found.fit.headroom_bytes),
        "goodput": pick(found.goodput, *GOODPUT),
    }


def _memory_line(fit: TrainingFit) -> str:
    """Whether the layout fits, as `fit-training` says."""
    has = gib(fit.job.accelerator.memory.visible_bytes)
    if not fit.fits:
        missing = gib(-fit.headroom_bytes)
        return f"DOES NOT FIT: {missing} missing of {has} per accelerator; see gpuplan fit-training"
    tight = "; tight: try it first" if fit.is_tight else ""
    chance = f"with {fit.fit_probability_frac:.0%} probability"
    return f"fits {chance}: {gib(fit.headroom_bytes)} of {has} per accelerator are left{tight}"


def _goodput_lines(share: Goodput) -> tuple[str, ...]:
    if not share.goodput_frac:
        return (f"NONE: {share.why_unknown}",)
    return (
        f"{frac(share.goodput_frac)} of the time is useful: a checkpoint of "
        f"{share.write_s:,.0f} s every {(share.interval_s or 0.0) / 60:,.0f} minutes costs "
        f"{frac(share.checkpoint_frac or 0.0)}, lost work {frac(share.lost_work_frac or 0.0)}, "
        f"restarts {frac(share.restart_frac or 0.0)}",
    )


def _measures(found: RunForecast) -> Iterator[Measure]:
    forecast = found.forecast
    yield "step", "s", forecast.step_s, 1.0
    yield "tokens per accelerator", "1/s", forecast.tokens_per_s_per_accelerator, 1.0
    yield "model FLOPs utilization (MFU)", "%", forecast.mfu_frac, 0.01
    if found.run_s is not None:
        yield "whole run, without interruptions", "days", found.run_s, DAY
    if found.wall_s is not None:
        yield "whole run, with failures and checkpoints", "days", found.wall_s, DAY


def _parts_table(found: RunForecast) -> Table:
    step = found.forecast.step
    parts = [part for part in step.parts_s if part[1] > LEAST_SHARE * step.step_s]
    columns = {
        "part": lambda part: part[0],
        ">s": lambda part: f"{part[1]:.3g}",
        ">share": lambda part: frac(part[1] / step.step_s),
    }
    return table("Where the step goes", sorted(parts, key=lambda part: -part[1]), columns)

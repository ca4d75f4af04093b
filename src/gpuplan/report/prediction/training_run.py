"""A training run as a document and as tables: step time, MFU, causes, goodput, length.

A speed-up curve with its knee, what causes the loss, and what helps more than accelerators.

Whether a training job fits, as a document and as tables.
"""

from collections.abc import Iterator
from math import isinf

from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.run import RunForecast, TrainingFit
from gpuplan.domain.training.scaling import ScaleCurve, ScalePoint
from gpuplan.domain.training.time import Goodput
from gpuplan.report.document import Document, pick, pick_each, plain, result_sheet
from gpuplan.report.formats import accelerator_name, chance, count, frac, gib, params, percent
from gpuplan.report.prediction.fit import suggestion_documents, suggestion_table
from gpuplan.report.prediction.setup import Measure, layout_document, measures_table
from gpuplan.report.table import pairs, table
from gpuplan.units import DAY, GB, HOUR

PARTS = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "master_bytes": "master weights",
    "optimizer_bytes": "optimizer states",
    "adapters_bytes": "LoRA adapters and their states",
    "activations_bytes": "activations",
    "logits_bytes": "logits and loss",
    "gathered_bytes": "gathered layers (FSDP)",
    "temporary_bytes": "temporary buffers",
    "fragmentation_bytes": "fragmentation",
    "reserve_bytes": "driver and communication",
}


BAR = 20  # cells of full efficiency
STRAIGHT_FRAC = 0.95  # efficiency from which the curve counts as a line


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
    requested, forecast = dict(found.columns), found.forecast
    head = "" if found.fit.fits else "DOES NOT FIT in memory; if it did: "
    head += (
        f"{found.model.name} ({params(found.model.n_params)}) on "
        f"{requested['n_accelerators']} × {accelerator_name(requested['accelerator'])}: "
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
    odds = f"with {chance(fit.fit_probability_frac)} probability"
    return f"fits {odds}: {gib(fit.headroom_bytes)} of {has} per accelerator are left{tight}"


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
        yield "whole run, without interruptions", *_span(found.run_s)
    if found.wall_s is not None:
        yield "whole run, with failures and checkpoints", *_span(found.wall_s)


def _span(run: Estimate) -> tuple[str, Estimate, float]:
    """A length below two days is hours."""
    return ("days", run, DAY) if run.value >= 2 * DAY else ("hours", run, HOUR)


def _parts_table(found: RunForecast) -> Table:
    step = found.forecast.step
    parts = [part for part in step.parts_s if part[1] > LEAST_SHARE * step.step_s]
    columns = {
        "part": lambda part: part[0],
        ">s": lambda part: f"{part[1]:.3g}",
        ">share": lambda part: frac(part[1] / step.step_s),
    }
    return table("Where the step goes", sorted(parts, key=lambda part: -part[1]), columns)


def scale_sheet(curve: ScaleCurve) -> Sheet:
    """The curve, ready to show."""
    remedies = {
        "change": lambda r: r.what,
        ">efficiency then": lambda r: percent(r.efficiency_frac),
    }
    body = {
        "knee": curve.knee,
        "states_bytes": round(curve.states_bytes),
        "points": [_point(point) for point in curve.points],
        "remedies": pick_each(curve.remedies, "what", "efficiency_frac"),
        "parallel": {
            "communication_to_compute": curve.communication_ratio,
            "serial_frac": curve.serial_frac,
        },
        "sensitivity": pick_each(curve.gains, "resource", "step_gain_frac", "worth_usd_per_month"),
        "next_spend": pick_each(curve.spends, "what", "buys", "speed_gain_frac"),
    }
    tables = [
        _curve_table(curve),
        table("Before adding accelerators", curve.remedies, remedies),
        _gain_table(curve),
        _spend_table(curve),
    ]
    return result_sheet(body, tables, head=_head(curve), assumptions=curve.assumptions)


def _head(curve: ScaleCurve) -> str:
    first, last = curve.points[0], curve.points[-1]
    if last.efficiency_frac >= STRAIGHT_FRAC:
        return f"speed grows in proportion up to {count(last.n_accelerators)} accelerators"
    return (
        f"{count(last.n_accelerators)} accelerators are {last.speedup_ratio:.1f} times as fast as "
        f"{count(first.n_accelerators)}, not {last.n_accelerators / first.n_accelerators:.0f} "
        f"times; {_knee(curve)}"
    )


def _knee(curve: ScaleCurve) -> str:
    if not curve.is_past_knee:
        return "every step still brings half of what it could"
    return f"beyond {count(curve.knee)} a doubling brings less than half of what it could"


def _gain_table(curve: ScaleCurve) -> Table:
    serial = "" if curve.serial_frac is None else f"; {percent(curve.serial_frac)} of it is serial"
    if curve.points[-1].speedup_ratio < 1:
        serial = "; slower than the smallest number, so that no serial share explains it"
    columns = {
        "10 % more of": lambda g: g.resource,
        ">step shorter by": lambda g: f"{g.step_gain_frac:.1%}",
        ">worth ($/month)": lambda g: (
            "" if g.worth_usd_per_month is None else f"{g.worth_usd_per_month:,.0f}"
        ),
    }
    ratio = f"communication over compute {curve.communication_ratio:.2f}"
    return table(f"Sensitivity at the largest number: {ratio}{serial}", curve.gains, columns)


def _spend_table(curve: ScaleCurve) -> Table:
    columns = {
        "the next $10,000 a month on": lambda s: s.what,
        "buys": lambda s: s.buys,
        ">faster by": lambda s: f"{s.speed_gain_frac:.0%}",
    }
    return table("What to spend on", curve.spends, columns)


def _point(point: ScalePoint) -> Document:
    usd = point.usd_per_percent
    return {
        **pick(point, "n_accelerators", "step_s", "compute_s", "efficiency_frac", "cause"),
        "speedup": point.speedup_ratio,
        "causes_s": dict(point.causes_s),
        "usd_per_h_per_percent": None if usd is None or isinf(usd) else usd,
    }


def _curve_table(curve: ScaleCurve) -> Table:
    columns = {
        ">accelerators": lambda p: count(p.n_accelerators),
        ">step (s)": lambda p: f"{p.step_s:.3f}",
        ">speed-up": lambda p: f"{p.speedup_ratio:.2f}",
        ">efficiency": lambda p: percent(p.efficiency_frac),
        "": lambda p: (
            "█" * round(BAR * p.efficiency_frac)
            + (" ← knee" if curve.is_past_knee and p.n_accelerators == curve.knee else "")
        ),
        "cause of the loss": lambda p: p.cause,
        ">$/h per %": _usd,
    }
    title = f"Speed-up; model states before sharding {curve.states_bytes / GB:,.1f} GB"
    return table(title, curve.points, columns)


def _usd(point: ScalePoint) -> str:
    if point.usd_per_percent is None:
        return "–"
    return "no gain" if isinf(point.usd_per_percent) else f"{point.usd_per_percent:.2f}"


def training_sheet(answer: TrainingFit) -> Sheet:
    """The answer for one job, ready to show."""
    tight = ("it can run, but less than 8 % of the memory is left for fragmentation: try it first",)
    return result_sheet(
        _training_fit_body(answer),
        [_memory_table(answer), suggestion_table(answer.suggestions)],
        head=_verdict(answer),
        remarks=[("Warnings:", tight if answer.is_tight else ())],
        assumptions=answer.assumptions,
        overrides=answer.overrides,
    )


def _training_fit_body(answer: TrainingFit) -> Document:
    """Bytes are of the fullest accelerator."""
    job, peak = answer.job, answer.peak
    figures = {name: round(getattr(peak, name)) for name in ("value", "low", "high")}
    return {
        **pick(job.model, "n_params", "n_active_params", model="name"),
        "accelerator": job.accelerator.id,
        "n_accelerators": job.layout.n_accelerators,
        **pick(job.setup, "task", "sequence_tokens", "micro_batch"),
        "recompute": job.setup.execution.recompute,
        "layout": {**layout_document(job.layout), **pick(job.layout, "cp", "sharding")},
        **pick(answer, "fits", "is_tight", "fit_probability_frac", "max_micro_batch"),
        "usable_bytes": round(job.accelerator.memory.visible_bytes),
        "peak_bytes": {**figures, "tier": peak.tier},
        "least_bytes": round(answer.memory.least_bytes),
        "states_bytes": round(answer.memory.states_bytes),
        **{name: round(getattr(answer.memory, name)) for name in PARTS},
        "headroom_bytes": round(answer.headroom_bytes),
        "suggestions": suggestion_documents(answer.suggestions),
    }


def _verdict(answer: TrainingFit) -> str:
    job = answer.job
    where = f"{job.layout.n_accelerators} × {job.accelerator.name}"
    what = f"{job.setup.task} of {params(job.model.n_params)} parameters"
    requested = (
        f"micro-batch {count(job.setup.micro_batch)} × {count(job.setup.sequence_tokens)} tokens"
    )
    peak = f"peak {gib(answer.peak.value)} ({gib(answer.peak.low)} to {gib(answer.peak.high)})"
    if answer.fits:
        most = f"micro-batches up to {count(answer.max_micro_batch)}"
        fits = "FITS, barely," if answer.is_tight else "FITS"
        odds = f"probability of fitting {chance(answer.fit_probability_frac)}"
        return f"{fits} on {where}: {what}, {requested}, {peak}; {odds}; {most}"
    lack = gib(-answer.headroom_bytes)
    return f"DOES NOT FIT on {where}: {what}, {requested}, {peak}; lacks {lack} per accelerator"


def _memory_table(answer: TrainingFit) -> Table:
    visible = answer.job.accelerator.memory.visible_bytes
    sizes = [(label, getattr(answer.memory, name)) for name, label in PARTS.items()]
    sizes = [(label, size) for label, size in sizes if size]
    sizes.append(("peak", answer.peak.value))
    sizes.append(("of it the minimum", answer.memory.least_bytes))
    sizes.append(("visible memory", visible))
    rows = [(label, gib(size), frac(size / visible)) for label, size in sizes]
    return pairs("Memory of one accelerator at the peak", rows, "part", "size", "share")

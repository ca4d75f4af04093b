"""A training run as a document and as tables: step, utilization, causes, goodput, length."""

from typing import Any

from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.run import RunForecast
from gpuplan.domain.training.time import Goodput
from gpuplan.report.formats import count, frac, params
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import DAY


def run_sheet(found: RunForecast) -> Sheet:
    """The run, ready to show."""
    asked = dict(found.columns)
    head = (
        f"{found.model.name} ({params(found.model.n_params)}) on "
        f"{asked.get('n_accelerators', '1')}x {asked.get('accelerator', '')}: "
        f"{found.forecast.step_s.value:.3g} s a step, "
        f"{count(found.forecast.tokens_per_s_per_accelerator.value)} tokens/s a device"
    )
    return Sheet(
        document=_document(found),
        tables=(_measures_table(found), _parts_table(found)),
        head=head,
        remarks=(
            ("Goodput:", _goodput_lines(found.goodput)),
            ("Assumed:", assumption_lines(found.forecast.assumptions)),
        ),
    )


def _document(found: RunForecast) -> dict[str, Any]:
    step = found.forecast.step
    run_s = found.run_s
    return {
        "schema_version": SCHEMA_VERSION,
        "asked": dict(found.columns),
        "n_params": found.model.n_params,
        "step_s": _estimate(found.forecast.step_s),
        "tokens_per_s_per_accelerator": _estimate(found.forecast.tokens_per_s_per_accelerator),
        "mfu_frac": _estimate(found.forecast.mfu_frac),
        "hfu_frac": step.hfu_frac,
        "parts_s": dict(step.parts_s),
        "cause": step.cause,
        "run_s": None if run_s is None else _estimate(run_s),
        "goodput": _goodput(found.goodput),
        "assumptions": assumptions_document(found.forecast.assumptions),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "tier": estimate.tier,
    }


def _goodput(share: Goodput | None) -> dict[str, Any] | None:
    if share is None:
        return None
    return {
        "goodput_frac": share.goodput_frac,
        "why_unknown": share.why_unknown,
        "interval_s": share.interval_s,
        "write_s": share.write_s,
        "checkpoint_frac": share.checkpoint_frac,
        "lost_work_frac": share.lost_work_frac,
        "restart_frac": share.restart_frac,
    }


def _goodput_lines(share: Goodput | None) -> tuple[str, ...]:
    if share is None:
        return ("UNKNOWN: say how fast checkpoints are written (--checkpoint-gb-per-s)",)
    if share.goodput_frac is None:
        return (f"UNKNOWN: {share.why_unknown}",)
    every = share.interval_s or 0.0
    again = frac(share.lost_work_frac or 0.0)
    return (
        f"{frac(share.goodput_frac)} of the clock is useful: a checkpoint of "
        f"{share.write_s:,.0f} s every {every / 60:,.0f} minutes costs "
        f"{frac(share.checkpoint_frac or 0.0)}, work done again {again}, "
        f"restarts {frac(share.restart_frac or 0.0)}",
    )


def _measures_table(found: RunForecast) -> Table:
    forecast = found.forecast
    rows = [
        _row("step", "s", forecast.step_s, 1.0),
        _row("tokens per device", "1/s", forecast.tokens_per_s_per_accelerator, 1.0),
        _row("model utilization (MFU)", "%", forecast.mfu_frac, 0.01),
    ]
    run_s = found.run_s
    if run_s is not None:
        rows.append(_row("whole run, without stops", "days", run_s, DAY))
    return Table(
        title="Predicted, with the range that holds 80 % of measurements",
        columns=("measure", "value", "low", "high", "unit", "tier"),
        rows=tuple(rows),
        right=("value", "low", "high"),
    )


def _row(label: str, unit: str, estimate: Estimate, scale: float) -> tuple[str, ...]:
    figures = (estimate.value, estimate.low, estimate.high)
    return (label, *(f"{figure / scale:,.4g}" for figure in figures), unit, estimate.tier)


def _parts_table(found: RunForecast) -> Table:
    step = found.forecast.step
    rows = tuple(
        (name, f"{seconds:.3g}", frac(seconds / step.step_s))
        for name, seconds in sorted(step.parts_s, key=lambda part: -part[1])
        if seconds > 0.0005 * step.step_s
    )
    return Table(
        title="Where the step goes",
        columns=("part", "s", "share"),
        rows=rows,
        right=("s", "share"),
    )

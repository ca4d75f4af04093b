"""A plan held against what happened, ready to show."""

from typing import Any

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.telemetry.replan import Replanned
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document


def replan_sheet(found: Replanned) -> Sheet:
    """Drift, both fleets, and whether to move."""
    drift = Table(
        title="Plan against what happened",
        columns=("figure", "planned", "observed", "ratio", "drifted"),
        rows=tuple(
            (d.what, d.planned, d.observed, f"{d.change_ratio:.2f}", "yes" if d.is_beyond else "no")
            for d in found.drifts
        ),
        right=("ratio",),
    )
    fleets = Table(
        title="Fleets",
        columns=("", "fleet", "USD/month"),
        rows=(("old", *_fleet(found.old)), ("new", *_fleet(found.new))),
        right=("USD/month",),
    )
    return Sheet(
        document=_document(found),
        tables=(drift, fleets),
        head=_head(found),
        remarks=(
            ("Why:", found.reasons),
            ("Mind:", found.forecast.warnings if found.forecast else ()),
            ("Assumed:", assumption_lines(found.assumptions)),
        ),
    )


def _head(found: Replanned) -> str:
    drifted = "; reality has drifted from the plan" if found.has_drifted else ""
    if found.advice == "keep":
        return f"keep the fleet{drifted}"
    word = "add" if found.n_step > 0 else "give back"
    now = " now" if found.advice == "change in steps" else ""
    what = f"{word} {abs(found.n_step)} accelerators{now}" if found.n_step else "change the fleet"
    return f"{what}: {-found.saved_usd_per_month:+,.0f} USD a month{drifted}"


def _fleet(answer: Answer) -> tuple[str, str]:
    if answer.plan is None:
        return "none that keeps the limits", ""
    pools = ", ".join(
        f"{pool.n_accelerators} x {pool.accelerator} as {pool.n_replicas} x TP{pool.tp}"
        for pool in answer.plan.pools
    )
    return pools, f"{answer.plan.cost_usd_per_month.value:,.0f}"


def _document(found: Replanned) -> dict[str, Any]:
    seen = found.observed
    return {
        "schema_version": SCHEMA_VERSION,
        "advice": found.advice,
        "drifted": found.has_drifted,
        "reasons": list(found.reasons),
        "drift": [
            {
                "what": d.what,
                "planned": d.planned,
                "observed": d.observed,
                "ratio": d.change_ratio,
                "beyond": d.is_beyond,
            }
            for d in found.drifts
        ],
        "observed": {
            "peak_requests_per_s": seen.peak_requests_per_s,
            "mean_requests_per_s": seen.mean_requests_per_s,
            "input_tokens": seen.input_tokens,
            "output_tokens": seen.output_tokens,
            "ttft_p95_s": seen.ttft_p95_s,
            "tpot_p95_s": seen.tpot_p95_s,
            "n_replicas": seen.n_replicas,
            "span_s": seen.span_s,
        },
        "n_added": found.n_added,
        "n_step": found.n_step,
        "saved_usd_per_month": found.saved_usd_per_month,
        "once_usd": found.once_usd,
        "old": dict(zip(("fleet", "usd_per_month"), _fleet(found.old), strict=True)),
        "new": dict(zip(("fleet", "usd_per_month"), _fleet(found.new), strict=True)),
        "assumptions": assumptions_document(found.assumptions),
    }

"""A plan against what happened, ready to show."""

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.sheet import Sheet
from gpuplan.domain.telemetry.replan import Replanned
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.formats import plural, usd
from gpuplan.report.plan.headline import fleet_of, layout_name
from gpuplan.report.table import table

OBSERVED = (
    "peak_requests_per_s",
    "mean_requests_per_s",
    "input_tokens",
    "output_tokens",
    "ttft_p95_s",
    "tpot_p95_s",
    "n_replicas",
    "span_s",
)


def replan_sheet(found: Replanned) -> Sheet:
    """Drift, both fleets, and whether to change the fleet."""
    drift = {
        "quantity": lambda d: d.what,
        "planned": lambda d: d.planned,
        "observed": lambda d: d.observed,
        ">ratio": lambda d: f"{d.change_ratio:.2f}",
        "drifted": lambda d: "yes" if d.is_beyond else "no",
    }
    fleets = {
        "": lambda row: row[0],
        "fleet": lambda row: fleet_of(row[1].plan, row[1].load) if row[1].plan else "none feasible",
        ">$/month": lambda row: usd(row[1].plan.cost_usd_per_month.value) if row[1].plan else "",
    }
    tables = [
        table("Plan against observation", found.drifts, drift),
        table("Fleets", [("old", found.old), ("new", found.new)], fleets),
    ]
    return result_sheet(
        _body(found),
        tables,
        head=_head(found),
        remarks=[
            ("Why:", found.reasons),
            ("Warnings:", found.forecast.warnings if found.forecast else ()),
        ],
        assumptions=found.assumptions,
    )


def _head(found: Replanned) -> str:
    drifted = "; observation has drifted from the plan" if found.has_drifted else ""
    if found.advice == "keep":
        return f"keep the fleet{drifted}"
    word = "add" if found.n_step > 0 else "release"
    now = " now" if found.advice == "change in steps" else ""
    what = f"{word} {plural(abs(found.n_step), 'accelerator')}{now}"
    what = what if found.n_step else "change the fleet"
    return f"{what}: {-found.saved_usd_per_month:+,.0f} $/month{drifted}"


def _fleet(answer: Answer) -> Document:
    if answer.plan is None:
        return {"fleet": "none that keeps the limits", "usd_per_month": ""}
    pools = ", ".join(
        f"{pool.n_accelerators} x {pool.accelerator} as {pool.n_replicas} x {layout_name(pool)}"
        for pool in answer.plan.pools
    )
    return {"fleet": pools, "usd_per_month": f"{answer.plan.cost_usd_per_month.value:,.0f}"}


def _body(found: Replanned) -> Document:
    drifts = {"ratio": "change_ratio", "beyond": "is_beyond"}
    return {
        **pick(found, "advice", "reasons", "n_added", "n_step", "saved_usd_per_month", "once_usd"),
        "drifted": found.has_drifted,
        "drift": pick_each(found.drifts, "what", "planned", "observed", **drifts),
        "observed": pick(found.observed, *OBSERVED),
        "old": _fleet(found.old),
        "new": _fleet(found.new),
    }

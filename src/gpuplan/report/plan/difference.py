"""Two plans side by side: what changed in the answer, and which inputs moved it.

Plan against actual cost as a sheet: by workload and model, and by team.

A plan against what happened, ready to show.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from gpuplan.domain.money.statement import ActualComparison, CostRow
from gpuplan.domain.plan.answer import Answer, PlannedPool
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.telemetry.replan import Replanned
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.formats import peak_kw, plural, signed_usd, usd
from gpuplan.report.plan.headline import fleet_of, fleet_words, headline, layout_name
from gpuplan.report.table import table
from gpuplan.units import HOUR

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


KEYS = ("what", "team", "model", "planned_usd", "actual_usd", "difference_usd")


Change = tuple[str, str, str]
ABSENT = "–"


def diff_sheet(old: Answer, new: Answer) -> Sheet:
    """What differs between two plans, ready to show."""
    answer, inputs = list(_answer_changes(old, new)), list(_input_changes(old, new))
    is_same = not answer and not inputs
    columns = {"what": itemgetter(0), "before": itemgetter(1), "after": itemgetter(2)}
    body = {
        "is_same": is_same,
        "cost_difference_usd_per_month": _cost_difference(old, new),
        "changes": [_document(change) for change in answer],
        "inputs": [_document(change) for change in inputs],
    }
    return result_sheet(
        body,
        [table("What changed", answer, columns), table("Inputs that changed", inputs, columns)],
        head="the plans are the same" if is_same else f"{headline(old)}\n→ {headline(new)}",
    )


def _document(change: Change) -> dict[str, str]:
    return dict(zip(("what", "before", "after"), change, strict=True))


def _cost_difference(old: Answer, new: Answer) -> float | None:
    if old.plan is None or new.plan is None:
        return None
    return new.plan.cost_usd_per_month.value - old.plan.cost_usd_per_month.value


def _answer_changes(old: Answer, new: Answer) -> Iterator[Change]:
    if old.feasible != new.feasible:
        yield "feasible", _word(old.feasible), _word(new.feasible)
    before, after = _pools(old), _pools(new)
    for name in dict.fromkeys((*before, *after)):
        yield from _changed(name, _fleet(before.get(name)), _fleet(after.get(name)))
        yield from _changed(f"{name}: from", _source(before.get(name)), _source(after.get(name)))
    difference = _cost_difference(old, new)
    if difference is not None and old.plan is not None and new.plan is not None:
        if abs(difference) >= 0.005:
            now = f"{usd(new.plan.cost_usd_per_month.value)} ({signed_usd(difference)})"
            yield "cost ($/month)", usd(old.plan.cost_usd_per_month.value), now
        yield from _changed("power", peak_kw(old.plan), peak_kw(new.plan))
        yield from _changed("SLOs met", _word(old.plan.slo.is_kept), _word(new.plan.slo.is_kept))
    made_old, made_new = old.provenance, new.provenance
    yield from _changed("gpuplan", made_old.package_version, made_new.package_version)
    yield from _changed("catalog", made_old.catalog_sha256[:12], made_new.catalog_sha256[:12])
    yield from _changed("seed", str(made_old.seed), str(made_new.seed))


def _input_changes(old: Answer, new: Answer) -> Iterator[Change]:
    before = dict(_leaves(old.provenance.scenario))
    after = dict(_leaves(new.provenance.scenario))
    for key in dict.fromkeys((*before, *after)):
        yield from _changed(key, before.get(key, ABSENT), after.get(key, ABSENT))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}[{place}]")
    else:
        yield path, f"{value:g}" if isinstance(value, int | float) else str(value)


def _changed(what: str, before: str, after: str) -> Iterator[Change]:
    if before != after:
        yield what, before, after


def _pools(answer: Answer) -> dict[str, PlannedPool]:
    if answer.plan is None:
        return {}
    # A mixed fleet has several pools for one workload.
    return {
        f"{pool.workload} on {pool.accelerator}"
        if _is_mixed(answer, pool.workload)
        else pool.workload: pool
        for pool in answer.plan.pools
    }


def _is_mixed(answer: Answer, workload: str) -> bool:
    pools = answer.plan.pools if answer.plan else ()
    return sum(pool.workload == workload for pool in pools) > 1


def _fleet(pool: PlannedPool | None) -> str:
    return ABSENT if pool is None else f"{fleet_words(pool)} {pool.precision}"


def _source(pool: PlannedPool | None) -> str:
    return ABSENT if pool is None else pool.source


def _word(truth: bool) -> str:
    return "yes" if truth else "no"


def actual_sheet(found: ActualComparison) -> Sheet:
    """The comparison, ready to show."""
    gap = found.actual_usd - found.planned_usd
    head = (
        f"{found.name}: {usd(found.actual_usd)} paid in {found.window_s / HOUR:,.0f} h, "
        f"{usd(found.planned_usd)} planned: {signed_usd(gap)}"
    )
    return result_sheet(
        {
            "name": found.name,
            "window_h": found.window_s / HOUR,
            "planned_usd": found.planned_usd,
            "actual_usd": found.actual_usd,
            "plan_against_actual": [_row(row) for row in found.rows],
            "teams": pick_each(found.teams, *KEYS),
        },
        [_table("By workload and model", found.rows), _table("By team", found.teams)],
        head=head,
        assumptions=found.assumptions,
    )


def _row(row: CostRow) -> Document:
    used = {
        "planned_accelerator_h": row.planned_accelerator_s,
        "actual_accelerator_h": row.actual_accelerator_s,
    }
    hours = {key: None if value is None else value / HOUR for key, value in used.items()}
    return {**pick(row, *KEYS), **hours}


def _table(title: str, rows: Sequence[CostRow]) -> Table:
    columns = {
        "what": lambda row: row.what,
        "team": lambda row: row.team,
        "model": lambda row: row.model,
        ">planned ($)": lambda row: "–" if row.planned_usd is None else usd(row.planned_usd),
        ">actual ($)": lambda row: "–" if row.actual_usd is None else usd(row.actual_usd),
        ">difference ($)": lambda row: signed_usd(row.difference_usd),
    }
    return table(title, rows, columns)


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


def _replanning_fleet(answer: Answer) -> Document:
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
        "old": _replanning_fleet(found.old),
        "new": _replanning_fleet(found.new),
    }

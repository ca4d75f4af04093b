"""The comparison and the odds of a plan, in: an answer; out: a table and a few lines.

Why this plan, and why not the others: everything that a plan file remembers of its choice.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from gpuplan.domain.plan.answer import Answer, Uncertainty
from gpuplan.domain.plan.comparison import ComparisonRow, RiskFleet, RunFigures
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import assumption_lines, result_sheet
from gpuplan.report.formats import (
    accelerator_name,
    chance,
    count,
    percent,
    signed_usd,
    span,
    three,
    usd,
)
from gpuplan.report.plan.details import calendar_table, growth_table, rejected_table, trade_table
from gpuplan.report.plan.document import plan_document
from gpuplan.report.plan.headline import AS_PUBLISHED, headline, money_unit, slo_name, with_names
from gpuplan.report.table import table
from gpuplan.units import KW, MS

N_SHOWN = 20
PARTS: tuple[str, ...] = (
    "name",
    "comparison",
    "pareto",
    "risk",
    "explanation",
    "uncertainty",
    "alternatives",
)
PARTS += ("rejected", "assumptions", "proof", "trade", "calendar", "quality")
N_ROWS = 5  # on the first screen
N_SHOWN_BESIDE = 2  # of them, that could not be chosen
UNKNOWN = "unknown"


def rows_tables(answer: Answer, *, is_short: bool) -> Iterator[Table]:
    """Every accelerator and precision beside the plan, services and runs apart.

    On the first screen the best few.
    """
    rows = answer.decision.comparison
    runs = {row.workload for row in rows if row.evidence.run}
    services = [row for row in rows if row.workload not in runs]
    for part in (services, [row for row in rows if row.workload in runs]):
        if part:
            yield _rows_table(part, is_short=is_short)


def _rows_table(rows: Sequence[ComparisonRow], *, is_short: bool) -> Table:
    shown = _best(rows) if is_short else list(rows)
    rest = f"; {len(shown)} of {len(rows)}" if len(shown) < len(rows) else ""
    columns = _columns(rows, is_short=is_short)
    # Images have no price of a token, batches no MFU: no column stands empty.
    remarks = {name: show for name, show in columns.items() if any(map(show, shown))}
    return table(f"Comparison, the plan first{rest}", shown, remarks)


def _columns(
    rows: Sequence[ComparisonRow], *, is_short: bool
) -> dict[str, Callable[[ComparisonRow], str]]:
    names = dict.fromkeys(name for row in rows for name in row.latency)
    first: dict[str, Callable[[ComparisonRow], str]] = {}
    if len({row.workload for row in rows}) > 1:
        first = {"workload": lambda row: row.workload}
    if all(row.evidence.run or row.layout is None for row in rows):
        return {**first, **RUN_COLUMNS, "note": _note if is_short else _whole_note}
    return {
        **first,
        "fleet": row_fleet if is_short else _fleet,
        ">$/month": lambda row: _usd(row.usd_per_month),
        ">$/Mtok": lambda row: _dollars(row.usd_per_million_tokens),
        **{f">{_title(name)}": partial(_latency, name) for name in names},
        ">P(SLO)": lambda row: _odds(row.probability_frac),
        ">kW": _kw,
        "note": _note if is_short else _whole_note,
    }


def _best(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """The plan, what could have been chosen instead, then what is cheaper but was not asked for."""
    chosen = [row for row in rows if row.is_chosen]
    fleets = [row for row in rows if row.usd_per_month is not None and not row.is_chosen]
    others = [row for row in fleets if row.evidence.is_eligible]
    beside = [row for row in fleets if not row.evidence.is_eligible][:N_SHOWN_BESIDE]
    n_others = max(0, N_ROWS - len(chosen) - len(beside))
    return [*chosen, *others[:n_others], *beside][:N_ROWS]


def cheapest_first(rows: Sequence[ComparisonRow], n_most: int) -> list[ComparisonRow]:
    """Fleets by their cost, one of each accelerator, the plan always among them."""
    fleets = sorted((r for r in rows if r.usd_per_month), key=lambda r: r.usd_per_month or 0.0)
    single = {row.workload for row in rows}
    if len(single) != 1:
        return []
    best = {row.accelerator: row for row in reversed([r for r in fleets if r.evidence.is_eligible])}
    best |= {row.accelerator: row for row in fleets if row.is_chosen}
    found = sorted(best.values(), key=lambda r: r.usd_per_month or 0.0)
    found = found if len(found) > 1 else fleets
    chosen = [row for row in found if row.is_chosen]
    others = [row for row in found if not row.is_chosen][: n_most - len(chosen)]
    return sorted([*chosen, *others], key=lambda r: r.usd_per_month or 0.0)


def row_fleet(row: ComparisonRow) -> str:
    """Accelerators, how a replica is sharded and the precision: 6 × H100 SXM TP2 FP8."""
    return _fleet(row, is_short=True)


def _fleet(row: ComparisonRow, *, is_short: bool = False) -> str:
    """With the number of replicas: 6 × H100 SXM (3 × TP2) FP8."""
    name, layout = accelerator_name(row.accelerator), row.layout
    precision = "" if row.precision == AS_PUBLISHED else row.precision.upper()
    if layout is None:
        return f"{name} {precision}".rstrip()
    n = f"{count(row.n_accelerators)} × {name}" if row.n_accelerators else name
    spread = layout.share or layout.spread.name
    if is_short:
        return " ".join(filter(None, (n, "" if spread == "TP1" else spread, precision)))
    share = f" on {layout.share}" if layout.share else ""
    return f"{n} ({row.n_replicas} × {layout.spread.name}{share}) {precision}".rstrip()


def _of_run(row: ComparisonRow, show: Callable[[RunFigures], str]) -> str:
    return show(row.evidence.run) if row.evidence.run else "none"


def _mfu(run: RunFigures) -> str:
    return "" if run.mfu_frac is None else percent(run.mfu_frac)


def _title(name: str) -> str:
    """ttft_p95_s as TTFT p95."""
    return slo_name(name.removesuffix("_s").replace("_", " "))


def _usd(amount: float | None) -> str:
    return "none" if amount is None else usd(amount)


def _dollars(amount: float | None) -> str:
    return "" if amount is None else f"{amount:,.2f}"


def _latency(name: str, row: ComparisonRow) -> str:
    seconds = row.latency.get(name)
    if seconds is None:
        return ""
    return f"{seconds / MS:,.0f} ms" if seconds >= MS else f"{three(seconds / MS)} ms"


def _odds(share: float | None) -> str:
    return "" if share is None else chance(share)


def _kw(row: ComparisonRow) -> str:
    if row.usd_per_month is None:
        return ""
    power_w = row.evidence.power_w
    if power_w is None:
        return UNKNOWN
    return f"{power_w / KW:,.0f}" if power_w >= 100 * KW else f"{power_w / KW:,.1f}"


RUN_COLUMNS: dict[str, Callable[[ComparisonRow], str]] = {
    "fleet": row_fleet,
    ">run time": lambda row: _of_run(row, lambda run: span(run.wall_s)),
    ">$ total": lambda row: _of_run(row, lambda run: usd(run.total_usd)),
    ">MFU": lambda row: _of_run(row, _mfu),
    ">P(success)": lambda row: _odds(row.probability_frac),
    ">kW": _kw,
}


def _note(row: ComparisonRow) -> str:
    """In a word or two; the whole note stands in the full table."""
    if row.is_chosen:
        return "chosen"
    words = {
        "prefill/decode": "P/D apart",
        "estimated": "estimate",
        "narrower": "narrower",
        "no number": "unsure",
    }
    return next((word for key, word in words.items() if key in row.evidence.note), "")


def _whole_note(row: ComparisonRow) -> str:
    evidence = row.evidence
    why = "; ".join(filter(None, (evidence.reason, evidence.relaxation)))
    return "; ".join(filter(None, ("this plan" if row.is_chosen else "", evidence.note, why)))


def risk_lines(answer: Answer) -> Iterator[str]:
    """What other odds would cost."""
    risk = answer.decision.risk
    if risk is None:
        return
    if risk.level_frac is not None and risk.probability_frac < risk.level_frac and risk.lines:
        yield risk.lines[0]
    for fleet in risk.fleets:
        if fleet.level_frac not in (risk.level_frac, risk.probability_frac):
            yield _odds_line(fleet)


def risk_basis(answer: Answer) -> tuple[str, ...]:
    """What the odds rest on, and what a measurement is worth."""
    risk = answer.decision.risk
    return () if risk is None else tuple(risk.lines)


def _odds_line(fleet: RiskFleet) -> str:
    level = percent(fleet.level_frac)
    if fleet.usd_per_month is None or fleet.probability_frac is None:
        return f"{level} or more: no fleet reaches it"
    extra = fleet.extra_usd_per_month or 0.0
    price = "the plan's own price" if abs(extra) < 0.5 else signed_usd(extra)
    return (
        f"{level} or more: {with_names(fleet.fleet)}, {usd(fleet.usd_per_month)}/month ({price}): "
        f"{chance(fleet.probability_frac)}"
    )


def explain_sheet(answer: Answer) -> Sheet:
    """The reasons behind a plan, ready to show."""
    whole, why, made = plan_document(answer), answer.explanation, answer.provenance
    sheet = result_sheet(
        {"feasible": answer.feasible, **{part: whole[part] for part in PARTS}},
        _tables(answer, n_most=N_SHOWN),
        head=headline(answer),
        remarks=[
            ("What binds:", why.conflicts),
            ("What the next $10,000 buys best:", why.next_spend),
            ("Quality of outputs:", answer.decision.quality),
            ("Assumptions:", assumption_lines(answer.assumptions)),
            (
                "Made with:",
                [
                    f"gpuplan {made.package_version}, catalog {made.catalog_sha256[:12]}, scenario "
                    f"{made.scenario_sha256[:12]}, seed {made.seed}, prices as of {made.as_of}"
                ],
            ),
        ],
    )
    files = tuple(found for found in _tables(answer, n_most=None) if found.rows)
    return replace(sheet, whole_tables=files)


def _tables(answer: Answer, *, n_most: int | None) -> Iterator[Table]:
    why, named = answer.explanation, _namer(answer)
    questions = {
        "question": lambda q: named(q.question),
        "fleet": lambda q: named(q.fleet),
        f">difference ({money_unit(answer.plan)})": lambda q: (
            "–" if q.extra_usd_per_month is None else signed_usd(q.extra_usd_per_month)
        ),
        "answer": lambda q: named(q.answer),
    }
    crossovers = {
        "input": lambda c: named(c.what),
        "at": lambda c: named(c.at),
        "then": lambda c: named(c.then),
    }
    yield table("Why this plan", why.why, {"reason": named})
    yield table("What binds", why.binding, {"limit": named})
    yield table("Why not …", why.why_not, questions)
    yield table("What simpler rules would have bought", why.naive, questions)
    yield table("Crossover points", why.crossovers, crossovers)
    yield trade_table(answer)
    yield calendar_table(answer)
    yield growth_table(answer)
    yield rejected_table(answer, n_most)
    if answer.uncertainty is not None:
        yield from _uncertainty_tables(answer, answer.uncertainty)


def _namer(answer: Answer) -> Callable[[str], str]:
    """Texts with accelerators as people name them: those of the comparison and of the plan."""
    ids = {row.accelerator for row in answer.decision.comparison}
    ids |= {pool.accelerator for pool in answer.plan.pools} if answer.plan else set()
    if not ids:
        return with_names
    any_id = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    found = re.compile(rf"(?<![\w-])(?:{any_id})(?![\w-])")
    return lambda text: found.sub(lambda part: accelerator_name(part[0]), with_names(text))


def _uncertainty_tables(answer: Answer, found: Uncertainty) -> Iterator[Table]:
    """Fleets over all samples, inputs by their weight, and named movements of prices."""
    named, unit = _namer(answer), money_unit(answer.plan)
    fleets = {
        "fleet": lambda row: (
            named(row.fleet) + (" ← least regret" if row.fleet == found.least_regret else "")
        ),
        f">mean ({unit})": lambda row: usd(row.mean_usd_per_month),
        f">p95 regret ({unit})": lambda row: usd(row.p95_regret_usd_per_month),
        ">SLOs met": lambda row: percent(row.kept_frac),
    }
    tornado = {
        "input": lambda bar: bar.what,
        "range": lambda bar: bar.span,
        f">low ({unit})": lambda bar: usd(bar.low_usd_per_month),
        f">high ({unit})": lambda bar: usd(bar.high_usd_per_month),
    }
    prices = {
        "prices": lambda p: p.name,
        f">this plan ({unit})": lambda p: usd(p.usd_per_month),
        "best fleet then": lambda p: named(p.best_fleet),
        f">its cost ({unit})": lambda p: usd(p.best_usd_per_month),
    }
    yield table(f"{found.n_samples} samples of {', '.join(found.inputs)}", found.rows, fleets)
    yield table("Sensitivity of the cost, one input at a time", found.tornado, tornado)
    yield table("If prices move", found.prices, prices)

"""A plan as one self-contained page: the answer, what it rests on, why not the others."""

from collections.abc import Iterable
from html import escape

from gpuplan.domain.plan import Answer, ChosenPlan, Curve
from gpuplan.domain.sheet import Table
from gpuplan.report.formats import kw, span, usd, usd_range
from gpuplan.report.page.charts import line_chart, tornado_chart
from gpuplan.report.page.style import STYLE
from gpuplan.report.plan.answer import fleet_line, plan_sheet
from gpuplan.report.plan.explanation import explain_sheet

LONG_TABLE = 12  # rows above which a table is folded


def plan_page(answer: Answer) -> str:
    """The whole page; it asks nothing of the network."""
    body = "".join(_sections(answer))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(answer.name)} – gpuplan</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _sections(answer: Answer) -> Iterable[str]:
    yield _head(answer)
    if answer.plan is not None:
        yield _cards(answer, answer.plan)
    yield _list("Nothing fits", answer.explanation.conflicts)
    yield _list("Why this", (*answer.explanation.why, *answer.explanation.binding))
    yield _tables(_without(plan_sheet(answer).file_tables, ("Left out", "Figures")))
    yield _charts(answer)
    yield _uses(answer)
    skipped = ("Left out", "Why this", "What binds", "If demand grows")
    yield _tables(_without(explain_sheet(answer).file_tables, skipped))
    yield _list("What the next $10,000 buy best", answer.explanation.next_spend)
    yield _list("Load", tuple(line for load in answer.load for line in load.lines))
    yield _assumptions(answer)
    left_out = [t for t in plan_sheet(answer).file_tables if t.title.startswith("Left out")]
    yield _tables(left_out)
    yield _footer(answer)


def _head(answer: Answer) -> str:
    if answer.plan is None:
        title = "No plan meets every limit"
    else:
        parts = dict.fromkeys(fleet_line(pool) for pool in answer.plan.pools)
        title = "; ".join(part for part in parts if not part.startswith("a part of"))
    return f'<h1>{escape(title)}</h1><p class="sub">{escape(answer.name)}</p>'


def _cards(answer: Answer, plan: ChosenPlan) -> str:
    n = sum(pool.n_accelerators for pool in plan.pools)
    cards = [
        (usd_range(plan.cost_usd_per_month).split(" (")[0], "a month", ""),
        (_span(plan), "80 % range of the month's cost", ""),
        (usd(plan.total_usd), f"in all, over {span(plan.span_s)}", ""),
        (str(n), "accelerators" if n else "accelerators: none is needed", ""),
        *_promise_card(plan),
        (kw(plan.power_w.value), "at the peak, at the plug", ""),
    ]
    if answer.proof is not None:
        gap = f"{100 * answer.proof.gap_frac:.2f} %"
        cards.append((gap, "proven gap to the best plan", ""))
    if answer.uncertainty is not None:
        share = f"{100 * answer.uncertainty.kept_frac:.0f} %"
        cards.append((share, "of samples: the plan is enough as it is", ""))
    shown = "".join(
        f'<div class="card"><b class="{kind}">{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what, kind in cards
    )
    return f'<div class="cards">{shown}</div>'


def _promise_card(plan: ChosenPlan) -> list[tuple[str, str, str]]:
    """Whether promises hold, and how far that was tried; nothing where none was made."""
    promises = plan.slo.promises
    if not promises:
        return []
    tiers = {p.reached_s.tier for p in promises if p.reached_s is not None}
    how = "promises, replayed" if tiers == {"simulated"} else "promises, by estimate"
    is_kept = plan.slo.is_kept
    return [("kept" if is_kept else "broken", how, "good" if is_kept else "bad")]


def _span(plan: ChosenPlan) -> str:
    cost = plan.cost_usd_per_month
    return f"{usd(cost.low)} … {usd(cost.high)}"


def _charts(answer: Answer) -> str:
    groups: dict[str, list[Curve]] = {}
    for curve in answer.charts:
        groups.setdefault(curve.chart, []).append(curve)
    drawn = [(name, line_chart(curves)) for name, curves in groups.items()]
    if answer.uncertainty is not None and answer.plan is not None:
        middle = answer.plan.cost_usd_per_month.value
        drawn.append(("What moves the cost", tornado_chart(answer.uncertainty.tornado, middle)))
    figures = "".join(
        f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>"
        for name, svg in drawn
        if svg
    )
    return f'<h2>Charts</h2><div class="charts">{figures}</div>' if figures else ""


def _uses(answer: Answer) -> str:
    pools = answer.plan.pools if answer.plan else ()
    lines = [f"{pool.workload}: {pool.use.remark}" for pool in pools if pool.use.remark]
    return _list("How busy it may be", tuple(lines))


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{escape(title)}</h2><ul>{items}</ul>" if items else ""


def _without(tables: Iterable[Table], titles: tuple[str, ...]) -> list[Table]:
    return [table for table in tables if not table.title.startswith(titles)]


def _tables(tables: Iterable[Table]) -> str:
    return "".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    head = "".join(_cell(column, "th", column in table.right) for column in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            _cell(cell, "td", column in table.right)
            for cell, column in zip(row, table.columns, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    whole = f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
    if len(table.rows) > LONG_TABLE:
        whole = f"<details><summary>{len(table.rows)} rows</summary>{whole}</details>"
    return f"<h2>{escape(table.title)}</h2>{whole}"


def _cell(text: str, tag: str, is_right: bool) -> str:
    kinds = ["n"] if is_right else []
    kinds += ["bad"] if text == "NO" else []
    mark = f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<{tag}{mark}>{escape(text)}</{tag}>"


def _assumptions(answer: Answer) -> str:
    columns = ("what", "value", "why", "change it with")
    rows = tuple((a.what, a.value, a.why, a.change) for a in answer.assumptions)
    return _table(Table(title="Assumed", columns=columns, rows=rows)) if rows else ""


def _footer(answer: Answer) -> str:
    made = answer.provenance
    return (
        f"<footer>gpuplan {escape(made.package_version)} · catalog "
        f"<code>{escape(made.catalog_sha256[:12])}</code> · scenario "
        f"<code>{escape(made.scenario_sha256[:12])}</code> · seed {made.seed} · prices judged on "
        f"{escape(made.as_of)}</footer>"
    )

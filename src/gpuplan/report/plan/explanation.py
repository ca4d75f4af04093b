"""Why this plan, and why not the others: everything that a plan file remembers of its choice."""

from gpuplan.domain.plan.answer import Answer, Uncertainty, WhyNot
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.formats import signed_usd, usd
from gpuplan.report.plan.details import growth_table, rejected_table
from gpuplan.report.plan.document import plan_document
from gpuplan.report.plan.headline import headline
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines

N_SHOWN = 20
PARTS = ("name", "explanation", "uncertainty", "alternatives", "rejected", "assumptions", "proof")


def explain_sheet(answer: Answer) -> Sheet:
    """The reasons behind a plan, ready to show."""
    whole = plan_document(answer)
    why = answer.explanation
    return Sheet(
        document={
            "schema_version": SCHEMA_VERSION,
            "feasible": answer.feasible,
            **{part: whole[part] for part in PARTS},
        },
        tables=_tables(answer, n_most=N_SHOWN),
        whole_tables=_tables(answer, n_most=None),
        head=headline(answer),
        remarks=(
            ("Nothing fits:", why.conflicts),
            ("The next 10,000 USD:", why.next_spend),
            ("Assumed:", assumption_lines(answer.assumptions)),
            ("Made with:", _provenance_lines(answer)),
        ),
    )


def _tables(answer: Answer, *, n_most: int | None) -> tuple[Table, ...]:
    why = answer.explanation
    tables = [
        _list_table("Why this", "reason", why.why),
        _list_table("What binds", "limit", why.binding),
        _question_table("Why not …", why.why_not),
        _question_table("What simpler reasoning would have bought", why.naive),
        Table(
            title="Where another choice takes over",
            columns=("what", "at", "then"),
            rows=tuple((c.what, c.at, c.then) for c in why.crossovers),
        ),
        growth_table(answer),
        rejected_table(answer, n_most),
    ]
    if answer.uncertainty is not None:
        tables[6:6] = uncertainty_tables(answer.uncertainty)
    return tuple(table for table in tables if table.rows)


def _list_table(title: str, column: str, lines: tuple[str, ...]) -> Table:
    return Table(title=title, columns=(column,), rows=tuple((line,) for line in lines))


def _question_table(title: str, found: tuple[WhyNot, ...]) -> Table:
    rows = tuple(
        (item.question, item.fleet, _extra(item.extra_usd_per_month), item.answer) for item in found
    )
    columns = ("question", "fleet", "$/month more", "answer")
    return Table(title=title, columns=columns, rows=rows, right=("$/month more",))


def _extra(amount: float | None) -> str:
    return "–" if amount is None else signed_usd(amount)


def uncertainty_tables(found: Uncertainty) -> list[Table]:
    """Fleets over all samples, inputs by their weight, and named movements of prices."""
    fleets = Table(
        title=f"{found.n_samples} samples of {', '.join(found.inputs)}",
        columns=("fleet", "mean $/month", "p95 regret", "promises hold"),
        rows=tuple(
            (
                _marked(row.fleet, found.least_regret),
                usd(row.mean_usd_per_month),
                usd(row.p95_regret_usd_per_month),
                f"{100 * row.kept_frac:.0f} %",
            )
            for row in found.rows
        ),
        right=("mean $/month", "p95 regret", "promises hold"),
    )
    tornado = Table(
        title="What matters most, one input at a time",
        columns=("input", "from … to", "low $/month", "high $/month"),
        rows=tuple(
            (bar.what, bar.span, usd(bar.low_usd_per_month), usd(bar.high_usd_per_month))
            for bar in found.tornado
        ),
        right=("low $/month", "high $/month"),
    )
    prices = Table(
        title="If prices move",
        columns=("prices", "this plan", "then best", "at"),
        rows=tuple(
            (p.name, usd(p.usd_per_month), p.best_fleet, usd(p.best_usd_per_month))
            for p in found.prices
        ),
        right=("this plan", "at"),
    )
    return [fleets, tornado, prices]


def _marked(fleet: str, least_regret: str) -> str:
    return f"{fleet} ← least regret" if fleet == least_regret else fleet


def _provenance_lines(answer: Answer) -> tuple[str, ...]:
    made = answer.provenance
    return (
        f"gpuplan {made.package_version}, catalog {made.catalog_sha256[:12]}, "
        f"scenario {made.scenario_sha256[:12]}, seed {made.seed}, prices judged on {made.as_of}",
    )

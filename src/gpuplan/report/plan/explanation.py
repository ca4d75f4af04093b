"""Why this plan, and why not the others: everything that a plan file remembers of its choice."""

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.domain.plan.answer import Answer, Uncertainty
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import assumption_lines, result_sheet
from gpuplan.report.formats import percent, signed_usd, usd
from gpuplan.report.plan.details import calendar_table, growth_table, rejected_table, trade_table
from gpuplan.report.plan.document import plan_document
from gpuplan.report.plan.headline import headline
from gpuplan.report.table import table

N_SHOWN = 20
PARTS = (
    "name",
    "comparison",
    "pareto",
    "risk",
    "explanation",
    "uncertainty",
    "alternatives",
    "rejected",
    "assumptions",
    "proof",
    "trade",
    "calendar",
    "quality",
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
    why = answer.explanation
    questions = {
        "question": lambda q: q.question,
        "fleet": lambda q: q.fleet,
        ">difference ($/month)": lambda q: (
            "–" if q.extra_usd_per_month is None else signed_usd(q.extra_usd_per_month)
        ),
        "answer": lambda q: q.answer,
    }
    crossovers = {
        "input": lambda c: c.what,
        "at": lambda c: c.at,
        "then": lambda c: c.then,
    }
    yield table("Why this plan", why.why, {"reason": str})
    yield table("What binds", why.binding, {"limit": str})
    yield table("Why not …", why.why_not, questions)
    yield table("What simpler rules would have bought", why.naive, questions)
    yield table("Crossover points", why.crossovers, crossovers)
    yield trade_table(answer)
    yield calendar_table(answer)
    yield growth_table(answer)
    yield rejected_table(answer, n_most)
    if answer.uncertainty is not None:
        yield from uncertainty_tables(answer.uncertainty)


def uncertainty_tables(found: Uncertainty) -> Iterator[Table]:
    """Fleets over all samples, inputs by their weight, and named movements of prices."""
    fleets = {
        "fleet": lambda row: (
            f"{row.fleet} ← least regret" if row.fleet == found.least_regret else row.fleet
        ),
        ">mean ($/month)": lambda row: usd(row.mean_usd_per_month),
        ">p95 regret ($/month)": lambda row: usd(row.p95_regret_usd_per_month),
        ">SLOs met": lambda row: percent(row.kept_frac),
    }
    tornado = {
        "input": lambda bar: bar.what,
        "range": lambda bar: bar.span,
        ">low ($/month)": lambda bar: usd(bar.low_usd_per_month),
        ">high ($/month)": lambda bar: usd(bar.high_usd_per_month),
    }
    prices = {
        "prices": lambda p: p.name,
        ">this plan ($/month)": lambda p: usd(p.usd_per_month),
        "best fleet then": lambda p: p.best_fleet,
        ">its cost ($/month)": lambda p: usd(p.best_usd_per_month),
    }
    yield table(f"{found.n_samples} samples of {', '.join(found.inputs)}", found.rows, fleets)
    yield table("Sensitivity of the cost, one input at a time", found.tornado, tornado)
    yield table("If prices move", found.prices, prices)

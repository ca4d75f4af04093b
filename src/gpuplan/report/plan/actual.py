"""Plan against actual cost as a sheet: by workload and model, and by team."""

from collections.abc import Sequence

from gpuplan.domain.money.actual import ActualComparison, CostRow
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.formats import signed_usd, usd
from gpuplan.report.table import table
from gpuplan.units import HOUR

KEYS = ("what", "team", "model", "planned_usd", "actual_usd", "difference_usd")


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

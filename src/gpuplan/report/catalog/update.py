"""What an update changed, and what it left alone and why."""

from gpuplan.domain.money.market import UpdateReport
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.provenance import SCHEMA_VERSION


def update_sheet(report: UpdateReport) -> Sheet:
    """One row for each cloud or model."""
    rows = tuple(
        (part.name, part.state, str(part.n_rows), str(part.n_dropped), part.detail)
        for part in report.parts
    )
    document = {
        "schema_version": SCHEMA_VERSION,
        "fetched_on": report.fetched_on.isoformat(),
        "source": report.source,
        "parts": [
            {
                "name": part.name,
                "state": part.state,
                "n_rows": part.n_rows,
                "n_dropped": part.n_dropped,
                "detail": part.detail,
            }
            for part in report.parts
        ],
    }
    n_good = sum(part.state in ("updated", "unchanged") for part in report.parts)
    columns = ("what", "state", "rows", "dropped", "detail")
    return Sheet(
        document=document,
        tables=(Table(title="", columns=columns, rows=rows, right=("rows", "dropped")),),
        head=f"{n_good} of {len(report.parts)} refreshed from {report.source}",
    )

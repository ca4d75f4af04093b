"""The bill of materials of a plan as a table: what is bought or rented, from whom, for how much."""

import csv
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO, StringIO

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile
from gpuplan.errors import InputError, Problem
from gpuplan.render.text import text_file

HEADER = (
    "pool",
    "model",
    "accelerator",
    "layout",
    "precision",
    "engine",
    "replicas",
    "spare replicas",
    "purchase",
    "cloud",
    "machine",
    "region",
    "machines",
    "accelerators per machine",
    "accelerators",
    "USD per machine-hour",
    "USD per month",
    "price date",
    "price source",
)
RISKY = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is a formula to a spreadsheet
Row = tuple[str | int | float, ...]


def rows_of(deployed: Deployed) -> Iterator[Row]:
    """A row for each way in which a pool is paid for."""
    for one in deployed.pools:
        yield from _rows(one)


def _rows(one: DeployedPool) -> Iterator[Row]:
    pool = one.pool
    head = (
        pool.workload,
        one.model,
        pool.accelerator,
        pool.layout.share or pool.layout.spread.name,
        pool.precision,
        pool.engine,
        pool.n_replicas,
        pool.n_spare_replicas,
    )
    for line in pool.purchases:
        yield (
            *head,
            line.purchase,
            line.cloud,
            line.offer,
            line.region,
            line.n_nodes,
            line.n_accelerators_per_node,
            line.n_nodes * line.n_accelerators_per_node,
            round(line.price_usd_per_node_h.value, 6),
            line.usd_per_month,
            line.price_date,
            line.price_source,
        )


def bom_csv(deployed: Deployed) -> Iterator[RenderedFile]:
    """As CSV."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([tuple(_safe(cell) for cell in row) for row in rows_of(deployed)])
    yield text_file("bom.csv", buffer.getvalue())


def _safe(cell: str | int | float) -> str | int | float:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(RISKY) else cell


def bom_xlsx(deployed: Deployed) -> Iterator[RenderedFile]:
    """As a workbook, numbers as numbers."""
    pl = import_module("polars")  # loaded for a workbook alone
    rows = list(rows_of(deployed))
    frame = pl.DataFrame(rows, schema=list(HEADER), orient="row")
    buffer = BytesIO()
    try:
        frame.write_excel(buffer, worksheet="BOM", autofit=True)
    except ModuleNotFoundError as error:
        what, fix = f"need {error.name}", "install it with: pip install 'gpuplan[report]'"
        raise InputError("render", [Problem("workbooks", what, fix)]) from None
    yield RenderedFile(path="bom.xlsx", content=buffer.getvalue())

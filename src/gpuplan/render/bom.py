"""Tables: the bill of materials (what, from whom, for how much) and the rack sheet."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from io import BytesIO, StringIO

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile
from gpuplan.errors import InputError, Problem
from gpuplan.render.text import text_file
from gpuplan.units import KW

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
    "accelerators per server",
    "accelerators",
    "USD per server-hour",
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


RACK_HEADER = (
    "rack",
    "bottom unit",
    "height (U)",
    "server",
    "kind",
    "accelerators",
    "server max (kW)",
    "rack max (kW)",
    "rack usable (kW)",
)


def rack_rows(deployed: Deployed) -> Iterator[Row]:
    """A row for each server that stands on the user's site, from the floor of the first rack up."""
    first = 1
    for plan in deployed.facilities:
        usable = "" if plan.fit.usable_w is None else round(plan.fit.usable_w / KW, 2)
        retained = Counter(slot.rack for slot in plan.slots)
        for slot in plan.slots:
            drawn = (round(n * plan.node.max_w / KW, 2) for n in (1, retained[slot.rack]))
            server = (slot.name, plan.node.name, plan.node.n_accelerators)
            yield (first + slot.rack, slot.bottom_u, slot.height_u, *server, *drawn, usable)
        first += max(retained, default=-1) + 1


def bom_csv(deployed: Deployed) -> Iterator[RenderedFile]:
    """As CSV."""
    yield _csv_file("bom.csv", HEADER, rows_of(deployed))


def rack_csv(deployed: Deployed) -> Iterator[RenderedFile]:
    """The rack sheet as CSV, where the plan has servers in racks."""
    rows = list(rack_rows(deployed))
    if rows:
        yield _csv_file("racks.csv", RACK_HEADER, rows)


def _csv_file(path: str, header: Sequence[str], rows: Iterable[Row]) -> RenderedFile:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([tuple(_safe(cell) for cell in row) for row in rows])
    return text_file(path, buffer.getvalue())


def _safe(cell: str | int | float) -> str | int | float:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(RISKY) else cell


def bom_xlsx(deployed: Deployed) -> Iterator[RenderedFile]:
    """As a workbook, numbers as numbers; with the rack sheet where there is one."""
    pl = import_module("polars")  # loaded for a workbook alone
    sheets: dict[str, tuple[Sequence[str], list[Row]]] = {}
    sheets["BOM"] = (HEADER, list(rows_of(deployed)))
    racks = list(rack_rows(deployed))
    if racks:
        sheets["Racks"] = (RACK_HEADER, racks)
    buffer = BytesIO()
    try:
        with import_module("xlsxwriter").Workbook(buffer) as book:
            for name, (header, rows) in sheets.items():
                frame = pl.DataFrame(rows, schema=list(header), orient="row")
                frame.write_excel(book, worksheet=name, autofit=True)
    except ModuleNotFoundError as error:
        what, fix = f"need {error.name}", "install it with: pip install 'gpuplan[report]'"
        raise InputError("render", [Problem("workbooks", what, fix)]) from None
    yield RenderedFile(path="bom.xlsx", content=buffer.getvalue())

"""Traces as Parquet: read in slices, so that only the columns asked for are ever in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpuplan.domain.traffic.trace import ColumnMap, TraceQuery
from gpuplan.errors import CatalogError, one
from gpuplan.inputs.traces.names import RUN, columns_of, find
from gpuplan.inputs.traces.rows import N_BLOCK_ROWS, Findings, RawRows
from gpuplan.inputs.traces.source import fault

if TYPE_CHECKING:
    import polars as pl

MAGIC = b"PAR1"


class ParquetTable(NamedTuple):
    """A table, and where it keeps what."""

    frame: "pl.LazyFrame"
    columns: ColumnMap
    n_rows: int
    run: str | None
    is_dated: bool  # times are dates, cast to nanoseconds since 1970


def open_table(path: Path, query: TraceQuery) -> ParquetTable:
    """The schema of the file and what it means."""
    import polars as pl  # noqa: PLC0415 - a third of a second, paid only by those who read Parquet

    try:
        frame = pl.scan_parquet(path)
        schema = frame.collect_schema()
        for column, _ in query.where:
            if column not in schema:
                raise fault(path, f"has no column {column!r} to choose by", "name one that it has")
        columns = columns_of(path, list(schema), query.columns)
        run = find(list(schema), RUN)
        is_dated = columns.arrive is not None and schema[columns.arrive].is_temporal()
        frame = _narrowed(frame, columns, run, is_dated=is_dated, query=query)
        n_rows = int(frame.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _broken(path, error) from None
    return ParquetTable(frame, columns, n_rows, run, is_dated)


def parquet_rows(path: Path, table: ParquetTable, findings: Findings) -> Iterator[RawRows]:
    """The rows in blocks."""
    import polars as pl  # noqa: PLC0415 - as above

    for start in range(0, table.n_rows, 8 * N_BLOCK_ROWS):
        try:
            part = table.frame.slice(start, 8 * N_BLOCK_ROWS).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise _broken(path, error) from None
        if table.run is not None:
            findings.runs.update(part["run"].cast(pl.String).fill_null("").to_list())
        yield _raw(part, start, table.columns)


def missing_polars() -> Exception:
    """What to say where the table reader is not installed."""
    fix = "install polars, or write the trace as CSV"
    return one(CatalogError, "trace", "polars", "is not installed", fix)


def _narrowed(
    frame: "pl.LazyFrame", columns: ColumnMap, run: str | None, *, is_dated: bool, query: TraceQuery
) -> "pl.LazyFrame":
    """Only the columns and rows asked for, with numbers of rows as in the file."""
    import polars as pl  # noqa: PLC0415 - as above

    frame = frame.with_row_index("row", offset=1)
    for column, value in query.where:
        frame = frame.filter(pl.col(column).cast(pl.String) == value)
    named: dict[str, str | None] = {
        "arrive": columns.arrive, "input": columns.input_tokens, "output": columns.output_tokens,
        "session": columns.session, "priority": columns.priority, "run": run,
    }  # fmt: skip
    chosen = [pl.col("row")]
    for name, source in named.items():
        if source is not None:
            is_time = name == "arrive" and is_dated
            values = pl.col(source).dt.epoch("ns") if is_time else pl.col(source)
            chosen.append(values.alias(name))
    return frame.select(chosen)


def _raw(part: "pl.DataFrame", start: int, columns: ColumnMap) -> RawRows:
    n = part.height

    def cells(name: str, default: int) -> list[object]:
        return part[name].to_list() if name in part.columns else [default] * n

    return RawRows(
        line=part["row"].to_list(),
        arrive=cells("arrive", 0),
        input_tokens=cells("input", 1),
        output_tokens=cells("output", 1),
        session=part["session"].to_list() if columns.session else [],
        priority=part["priority"].to_list() if columns.priority else [],
    )


def _broken(path: Path, error: BaseException) -> Exception:
    return fault(path, f"is no sound Parquet: {str(error)[:100]}", "write it again")

"""Traces as Parquet: read in slices, so that only the columns asked for are ever in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import CatalogError, one
from gpuplan.inputs.traces.clock import Clock
from gpuplan.inputs.traces.columns import RUN, columns_note, columns_of, columns_taken, find
from gpuplan.inputs.traces.rows import N_BLOCK_ROWS, Converter, Findings, OpenTrace, RawRows
from gpuplan.inputs.traces.source import fault

if TYPE_CHECKING:
    import polars as pl

MAGIC = b"PAR1"
N_SLICE_ROWS = 8 * N_BLOCK_ROWS


def open_parquet(path: Path, query: TraceQuery) -> OpenTrace:
    """The rows of a Parquet table; dates become nanoseconds since 1970."""
    pl = polars()
    try:
        frame = pl.scan_parquet(path)
        schema = frame.collect_schema()
        for column, _ in query.where:
            if column not in schema:
                raise fault(path, f"has no column {column!r} to choose by", "name one that it has")
        columns = columns_of(path, list(schema), query.columns)
        is_dated = columns.arrive is not None and schema[columns.arrive].is_temporal()
        taken = {**columns_taken(columns), "run": find(list(schema), RUN)}
        frame = _narrowed(frame, taken, query, is_dated=is_dated)
        n_rows = int(frame.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise broken(path, error) from None
    unit = "ns" if is_dated else columns.time_unit
    clock = Clock(unit, name=columns.arrive) if columns.arrive else None
    converter = Converter(clock, Findings(), unit="row")
    rows = _rows(path, frame, n_rows, converter.findings)
    return OpenTrace("parquet", rows, converter, (columns_note(columns),))


def _rows(path: Path, frame: "pl.LazyFrame", n_rows: int, findings: Findings) -> Iterator[RawRows]:
    """The rows of the table in blocks of bounded size."""
    pl = polars()
    for start in range(0, n_rows, N_SLICE_ROWS):
        try:
            part = frame.slice(start, N_SLICE_ROWS).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise broken(path, error) from None
        if "run" in part.columns:
            findings.runs.update(part["run"].cast(pl.String).fill_null("").to_list())
        yield _raw(part)


def polars() -> Any:
    """The table reader, loaded by those who read tables only; CatalogError where there is none."""
    try:
        import polars as pl  # noqa: PLC0415 - a third of a second
    except ImportError:
        fix = "install polars, or write the trace as CSV"
        raise one(CatalogError, "trace", "polars", "is not installed", fix) from None
    return pl


def broken(path: Path, error: BaseException) -> Exception:
    """The error of a file that is no sound Parquet."""
    return fault(path, f"is no sound Parquet: {str(error)[:100]}", "write it again")


def _narrowed(
    frame: "pl.LazyFrame", taken: dict[str, str | None], query: TraceQuery, *, is_dated: bool
) -> "pl.LazyFrame":
    """Only the columns and rows asked for, with numbers of rows as in the file."""
    pl = polars()
    frame = frame.with_row_index("row", offset=1)
    for column, value in query.where:
        frame = frame.filter(pl.col(column).cast(pl.String) == value)
    chosen = [pl.col("row")]
    for name, source in taken.items():
        if source is not None:
            is_time = name == "arrive" and is_dated
            values = pl.col(source).dt.epoch("ns") if is_time else pl.col(source)
            chosen.append(values.alias(name))
    return frame.select(chosen)


def _raw(part: "pl.DataFrame") -> RawRows:
    def cells(name: str, missing: int | None) -> list[object]:
        if name in part.columns:
            return part[name].to_list()
        return [] if missing is None else [missing] * part.height

    return RawRows(
        line=part["row"].to_list(),
        arrive=cells("arrive", 0),
        input_tokens=cells("input", 1),
        output_tokens=cells("output", 1),
        session=cells("session", None),
        priority=cells("priority", None),
        max_tokens=cells("max", None),
    )

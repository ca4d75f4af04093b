"""Telemetry in Parquet: the same tables, read in parts so that memory stays bounded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError, one
from gpuplan.observe import special
from gpuplan.observe.collect import Collector
from gpuplan.observe.formats import format_of, plain
from gpuplan.observe.tables import take_rows

MAX_ROWS = 5_000_000  # that become series in memory; larger files are summed up, not held


def read_parquet(path: Path) -> Telemetry:
    """A file that fits into memory as series."""
    frame = pl.scan_parquet(path)
    columns = frame.collect_schema().names()
    n_rows = int(frame.select(pl.len()).collect().item())
    if n_rows > MAX_ROWS:
        what = f"{n_rows:,} rows are too many to hold as series"
        fix = "give a part of the time, or the folder to `gpuplan diagnose`, which works in batches"
        raise one(InputError, str(path), "telemetry", what, fix)
    collector = Collector(str(path), "Parquet")
    if special.is_long(columns):
        special.take_long(collector, _rows(frame))
        return collector.finish()
    layout = format_of(tuple(plain(column) for column in columns))
    if layout is None:
        what = f"columns {', '.join(columns[:6])} are not known"
        fix = "name them as DCGM does, or as in docs/rooms/observe.md"
        raise one(InputError, str(path), "telemetry", what, fix)
    take_rows(collector, layout, columns, _rows(frame))
    return collector.finish()


def _rows(frame: pl.LazyFrame) -> Iterator[dict[str, Any]]:
    whole = frame.collect()
    for part in whole.iter_slices(100_000):
        for row in part.iter_rows(named=True):
            yield {name: "" if cell is None else cell for name, cell in row.items()}

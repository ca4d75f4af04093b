"""Which tables of a folder are ServeGen's clients, and which models they tell of."""

from pathlib import Path

from gpuplan.inputs.traces.parquet_trace import missing_polars
from gpuplan.inputs.traces.servegen import LENGTHS, RATES
from gpuplan.inputs.traces.source import fault


def client_tables(folder: Path) -> tuple[Path, Path] | None:
    """The tables of rates and of lengths; None where the folder holds no such pair."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.parquet")):
        columns = _columns(path)
        if columns >= set(RATES):
            found.setdefault("rates", path)
        elif columns >= set(LENGTHS):
            found.setdefault("lengths", path)
    return (found["rates"], found["lengths"]) if len(found) == 2 else None


def models_of(rates: Path) -> list[str]:
    """Names of the models whose clients the table holds."""
    try:
        import polars as pl  # noqa: PLC0415 - paid only by those who read tables
    except ImportError:
        raise missing_polars() from None
    column = pl.scan_parquet(rates).select(pl.col("model").cast(pl.String).unique()).collect()
    return sorted(column["model"].to_list())


def _columns(path: Path) -> set[str]:
    try:
        import polars as pl  # noqa: PLC0415 - paid only by those who read tables
    except ImportError:
        raise missing_polars() from None
    try:
        return set(pl.scan_parquet(path).collect_schema().names())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise fault(path, f"cannot be read: {error}"[:200], "give a Parquet table") from None

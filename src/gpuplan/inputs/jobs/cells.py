"""Cells of job tables as numbers: times, durations, time limits, GPUs in lists of resources."""

from collections.abc import Mapping, Sequence

import polars as pl

# What producers write where there is nothing.
ABSENT = ("", "unknown", "none", "null", "nan", "n/a", "na", "partition_limit", "(null)")
UNLIMITED = ("unlimited", "infinite", "4294967295")
DATE_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y %H:%M")
ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
MILLISECONDS_FROM = 1e11  # an instant in seconds has fewer digits until the year 5138
CLOCK = r"^(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d)(?:\.\d+)?)?$"
GPU_TRES = r"gres/gpu(?::[\w.-]+)?[=:](\d+)"
GPU_GRES = r"gpu(?::[A-Za-z][\w.-]*)?:(\d+)"
GPU_NUMBERED = r"(?:^|,)100[12]=(\d+)"
GPU_TYPE = r"gpu:([A-Za-z][\w.-]*)[=:]\d+"


def clean(name: str) -> pl.Expr:
    """The cell without spaces around it; null where it says that there is nothing."""
    cell = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(cell.str.to_lowercase().is_in(ABSENT)).then(None).otherwise(cell)


def number(name: str) -> pl.Expr:
    """The cell as a number; null where it is none."""
    return clean(name).cast(pl.Float64, strict=False)


def instant(name: str) -> pl.Expr:
    """The cell as seconds: an epoch, a count from the start, or a date with or without its zone."""
    cell = clean(name)
    figure = cell.cast(pl.Float64, strict=False)
    figure = pl.when(figure.abs() >= MILLISECONDS_FROM).then(figure / 1000).otherwise(figure)
    offset = cell.str.extract(r"([+-]\d\d:?\d\d)$", 1).str.replace(":", "")
    hours = offset.str.slice(0, 3).cast(pl.Float64, strict=False).fill_null(0.0)
    plain = cell.str.replace(ZONE, "").str.replace(r"\.\d+$", "")
    dates = [plain.str.to_datetime(form, strict=False) for form in DATE_FORMATS]
    seconds = pl.coalesce(dates).dt.epoch("us").cast(pl.Float64) / 1e6 - hours * 3600.0
    return pl.coalesce(figure, seconds)


def span(name: str) -> pl.Expr:
    """The cell as a duration in seconds: a number, or days-hours:minutes:seconds."""
    cell = clean(name)
    days, first, second, third = (
        cell.str.extract(CLOCK, k).cast(pl.Float64, strict=False) for k in range(1, 5)
    )
    # With two parts only, Slurm means minutes and seconds.
    short, long = first * 60 + second, first * 3600 + second * 60 + third
    clock = pl.when(third.is_null()).then(short).otherwise(long)
    figure = cell.cast(pl.Float64, strict=False)
    return pl.coalesce(figure, clock + days.fill_null(0.0) * 86400.0)


def limit(name: str) -> pl.Expr:
    """A time limit in seconds: numbers are minutes, as Slurm counts; null where there is none."""
    cell = clean(name)
    is_none = cell.str.to_lowercase().is_in(UNLIMITED)
    figure = cell.cast(pl.Float64, strict=False)
    seconds = pl.when(figure.is_not_null()).then(figure * 60.0).otherwise(span(name))
    return pl.when(is_none).then(None).otherwise(seconds)


def listed_gpus(names: Mapping[str, pl.Expr]) -> pl.Expr:
    """GPUs in the first list of resources that names any, times its factor; 0 where none does."""
    found = [
        clean(name).str.extract(pattern, 1).cast(pl.Float64, strict=False) * factor
        for name, factor in names.items()
        for pattern in (GPU_TRES, GPU_GRES, GPU_NUMBERED)
    ]
    return pl.coalesce([*found, pl.lit(0.0)])


def listed_type(names: Sequence[str]) -> pl.Expr:
    """GPU type in the first list of resources that names one."""
    return pl.coalesce([clean(name).str.extract(GPU_TYPE, 1) for name in names])

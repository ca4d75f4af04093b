"""Telemetry of whole fleets in Parquet: read in batches of files, so that memory stays bounded.

Utilization is counted by whole percent, which makes quantiles exact to a percent without sorting;
everything else is sums. Files may be split by device or by time: what is kept adds up either way.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.digest import DeviceDigests, FleetDigest
from gpuplan.errors import InputError, one
from gpuplan.observe.formats import GENERIC, GPU_TELEMETRY, PERCENT_NAMES, plain
from gpuplan.observe.guard import guarded
from gpuplan.observe.names import Word
from gpuplan.units import HOUR

N_FILES = 8  # of a batch
IDLE_PERCENT = 2
METRICS = ("gpu_util_frac", "sm_active_frac", "tensor_active_frac", "power_w", "memory_used_bytes")
LABELS = {
    "device": ("uuid", "gpu_uuid", "gpu_id", "gpu", "device"),
    "node": ("hostname", "node", "host", "instance"),
    "team": ("namespace", "team", "account"),
    "model": ("modelname", "gpu_model", "model"),
}


def read_fleet(path: Path) -> FleetDigest:
    """Every device of a folder of Parquet files, or of one large file."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise one(
            InputError, str(path), "telemetry", "holds no Parquet file", "give .parquet files"
        )
    with guarded(str(path)):
        columns = _columns(pl.scan_parquet(files[0]).collect_schema().names(), str(path))
        _settle_units(files, columns)
        parts = [_batch(files[k : k + N_FILES], columns) for k in range(0, len(files), N_FILES)]
        return _digest(str(path), columns, parts)


def _settle_units(files: list[Path], columns: dict[str, Any]) -> None:
    """Old names that carry ratios: proven by the whole column, which costs one pass over it."""
    for metric, (column, word) in columns["words"].items():
        frame = pl.scan_parquet(files, missing_columns="insert")
        is_old = column.upper() in PERCENT_NAMES
        if not is_old or not frame.collect_schema()[column].is_float():
            continue  # whole numbers are percents
        value = pl.col(column).cast(pl.Float64)
        remarks = frame.select(
            value.fill_nan(None).max().alias("high"), (value % 1.0 != 0).any().alias("has_parts")
        ).collect(engine="streaming")
        high, has_parts = remarks.row(0)
        if high is not None and high <= 1.0 and has_parts:
            columns["words"][metric] = (column, Word(word.metric))


def is_fleet(path: Path, max_rows: int) -> bool:
    """Whether this is a folder, or a file with more rows than series can hold."""
    if path.is_dir():
        return True
    if path.suffix != ".parquet" or not path.is_file():
        return False
    with guarded(str(path)):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item()) > max_rows


def _columns(names: Sequence[str], source: str) -> dict[str, Any]:
    """Which column is what: time, labels, and the metrics with their scales."""
    plains = {plain(name): name for name in names}
    words: dict[str, tuple[str, Word]] = {}
    for layout in (GPU_TELEMETRY, GENERIC):
        for name, word in layout.words.items():
            if name in plains and word.metric in METRICS and word.metric not in words:
                words[word.metric] = (plains[name], word)
    time = next((plains[name] for name in GENERIC.times if name in plains), None)
    labels = {
        what: plains[found[0]]
        for what, candidates in LABELS.items()
        if (found := [name for name in candidates if name in plains])
    }
    if time is None or "gpu_util_frac" not in words or "device" not in labels:
        what = f"columns {', '.join(names[:6])} lack a time, a device or its utilization"
        fix = "name them timestamp, gpu (or uuid) and DCGM_FI_DEV_GPU_UTIL or gpu_util_frac"
        raise one(InputError, source, "telemetry", what, fix)
    return {"time": time, "labels": labels, "words": words}


def _batch(files: list[Path], columns: dict[str, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sums by device and percent of use, and the whole by instant.

    Two passes over the columns cost less than one that holds converted rows for both.
    """
    frame = pl.scan_parquet(files, missing_columns="insert")
    values = {metric: _value(column, word) for metric, (column, word) in columns["words"].items()}
    labels, at = columns["labels"], _seconds(frame, columns["time"])
    use = values.pop("gpu_util_frac")
    cells = frame.group_by(
        *(pl.col(labels[key]).alias(key) for key in _keys(columns)),
        (use * 100).round().cast(pl.Int16).alias("percent"),
    ).agg(
        pl.len().alias("n"),
        at.min().alias("begin_s"),
        at.max().alias("end_s"),
        *(pl.col(labels[name]).first().alias(name) for name in ("team", "model") if name in labels),
        *(value.sum().alias(name) for name, value in values.items()),
        *(value.count().alias(f"{name}_n") for name, value in values.items()),
    )
    instants = frame.group_by(at.alias("at_s")).agg(
        use.sum().alias("total"), use.count().alias("n")
    )
    as_text = pl.col([name for name in labels if name in cells.collect_schema().names()])
    return (
        cells.with_columns(as_text.cast(pl.String)).collect(engine="streaming"),
        instants.collect(engine="streaming"),
    )


def _keys(columns: dict[str, Any]) -> list[str]:
    """What names a device."""
    return ["node", "device"] if "node" in columns["labels"] else ["device"]


def _value(column: str, word: Word) -> pl.Expr:
    """In base units; what no device can show is missing."""
    value = pl.col(column).cast(pl.Float64, strict=False) * word.scale
    if word.metric.endswith("_frac"):
        return pl.when((value >= 0) & (value <= 1.05)).then(value.clip(0.0, 1.0))
    return pl.when((value >= 0) & (value < 1e15)).then(value)


def _seconds(frame: pl.LazyFrame, column: str) -> pl.Expr:
    kind = frame.collect_schema()[column]
    if kind.is_temporal():
        return pl.col(column).dt.epoch("s")
    return pl.col(column).cast(pl.Float64, strict=False).floor().cast(pl.Int64)


def _digest(
    source: str,
    columns: dict[str, Any],
    parts: Sequence[tuple[pl.DataFrame, pl.DataFrame]],
) -> FleetDigest:
    keys = _keys(columns)
    cells = pl.concat([part[0] for part in parts])
    sums = _added(cells.drop("percent"), keys)
    counts = cells.group_by(*keys, "percent").agg(pl.col("n").sum())
    instants = (
        pl.concat([part[1] for part in parts])
        .group_by("at_s")
        .agg(pl.col("total").sum(), pl.col("n").sum())
        .sort("at_s")
    )
    table = _percent_table(sums, counts, keys)
    step_s = _step(sums)
    devices = _devices(sums, table, keys)
    hours = _hours(instants)
    return FleetDigest(
        source=source,
        devices=devices,
        percent_s=floats(table.sum(axis=0) * step_s),
        at_s=floats(hours["hour"].to_numpy()),
        hour_mean_frac=floats(hours["mean"].to_numpy()),
        hour_peak_frac=floats(hours["peak"].to_numpy()),
        n_rows=int(sums["n"].sum()),
    )


def _hours(instants: pl.DataFrame) -> pl.DataFrame:
    """The whole by the hour: its mean, and its highest instant."""
    mean = (pl.col("total") / pl.col("n")).alias("mean")
    hour = (pl.col("at_s") // HOUR * HOUR).alias("hour")
    whole = (pl.col("total").sum() / pl.col("n").sum()).alias("mean")
    peak = pl.col("mean").max().alias("peak")
    return instants.with_columns(hour, mean).group_by("hour").agg(whole, peak).sort("hour")


def _added(parts: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Parts of one device from several files, together."""
    special = {"begin_s": pl.col("begin_s").min(), "end_s": pl.col("end_s").max()}
    firsts = {name: pl.col(name).first() for name in ("team", "model") if name in parts.columns}
    rest = [name for name in parts.columns if name not in (*keys, *special, *firsts)]
    return (
        parts.group_by(keys)
        .agg(*special.values(), *firsts.values(), *(pl.col(name).sum() for name in rest))
        .sort(keys)
    )


def _percent_table(
    sums: pl.DataFrame, counts: pl.DataFrame, keys: list[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """[device, percent] how many samples."""
    order = sums.select(keys).with_row_index("row")
    joined = counts.drop_nulls("percent").join(order, on=keys)
    table = np.zeros((len(order), 101))
    place = joined["row"].to_numpy(), np.clip(joined["percent"].to_numpy(), 0, 100)
    np.add.at(table, place, joined["n"].to_numpy())
    return table


def _step(sums: pl.DataFrame) -> float:
    """Seconds between two samples of a device, the usual one."""
    span = (sums["end_s"] - sums["begin_s"]).to_numpy()
    n = sums["n"].to_numpy()
    steps = span[n > 1] / (n[n > 1] - 1)
    return float(np.median(steps)) if len(steps) else 1.0


def _devices(
    sums: pl.DataFrame, table: np.ndarray[tuple[int, int], np.dtype[np.float64]], keys: list[str]
) -> DeviceDigests:
    n = np.maximum(table.sum(axis=1), 1.0)
    below = np.cumsum(table, axis=1)
    percents = np.arange(101)
    nothing = np.full(len(sums), np.nan)

    def mean(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        if name not in sums.columns:
            return nothing
        count = sums[f"{name}_n"].to_numpy()
        return np.where(count > 0, sums[name].to_numpy() / np.maximum(count, 1), np.nan)

    def text(name: str) -> tuple[str, ...]:
        if name not in sums.columns:
            return ("",) * len(sums)
        return tuple(str(cell or "") for cell in sums[name].to_list())

    names = [" ".join(str(cell) for cell in row) for row in sums.select(keys).iter_rows()]
    return DeviceDigests(
        name=tuple(names),
        team=text("team"),
        model=text("model"),
        span_s=floats((sums["end_s"] - sums["begin_s"]).to_numpy()),
        mean_frac=floats(table @ percents / n / 100.0),
        p95_frac=floats(np.argmax(below >= 0.95 * n[:, None], axis=1) / 100.0),
        peak_frac=floats((100 - np.argmax(table[:, ::-1] > 0, axis=1)) / 100.0),
        idle_frac=floats(below[:, IDLE_PERCENT] / n),
        sm_frac=floats(mean("sm_active_frac")),
        tensor_frac=floats(mean("tensor_active_frac")),
        power_w=floats(mean("power_w")),
        held_bytes=floats(mean("memory_used_bytes")),
    )

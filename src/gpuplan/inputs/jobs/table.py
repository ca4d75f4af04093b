"""Tables of jobs: one row a job, columns by the names that producers give them."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import polars as pl

from gpuplan.inputs.documents.problems import other_names
from gpuplan.inputs.jobs import cells

# What a column may be called, the surest name first; letters and digits alone, lower case.
NAMES = other_names("jobs")
LISTS = NAMES.pop("list")
PERCENT = {"plangpu"}  # 100 is one GPU
PER_NODE = {"trespernode", "gres"}  # as squeue prints them


class JobTable(NamedTuple):
    """Which column of a file holds what."""

    columns: Mapping[str, str]  # meaning → column as written
    lists: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        """Whether jobs can be replayed: when they came, how long they ran, on how many GPUs."""
        has = self.columns.keys()
        lasts = "duration" in has or {"start", "end"} <= has or {"limit", "limits"} & has
        return "submit" in has and bool(lasts) and ("gpus" in has or bool(self.lists))


def plain(name: str) -> str:
    """A column's name by its letters and digits."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def table_of(names: list[str]) -> JobTable:
    """Meanings of the columns; the first name of a list that the file has wins."""
    known = {plain(name): name for name in reversed(names)}
    found = {
        meaning: next(known[name] for name in able if name in known)
        for meaning, able in NAMES.items()
        if any(name in known for name in able)
    }
    if found.get("team") and plain(found["team"]) == "cluster" and "alloctres" in known:
        found["team"] = known.get("account") or known.get("user") or found["team"]
    return JobTable(found, tuple(known[name] for name in LISTS if name in known))


def expressions(table: JobTable) -> Iterator[pl.Expr]:
    """Columns of one kind out of the producer's: seconds, GPUs, names."""
    has = table.columns
    kinds: dict[str, Callable[[str], pl.Expr]] = {
        "submit": cells.instant,
        "start": cells.instant,
        "end": cells.instant,
        "duration": cells.span,
        "limit": cells.limit,
        "limits": cells.span,
        "deadline": cells.instant,
        "state": cells.clean,
        "team": cells.clean,
        "type": cells.clean,
        "profile": cells.clean,
        "job": cells.clean,
    }
    for meaning, name in has.items():
        yield kinds.get(meaning, cells.number)(name).alias(f"_{meaning}")
    if "gpus" not in has:
        each = cells.number(has["nodes"]).fill_null(1.0) if "nodes" in has else pl.lit(1.0)
        one = pl.lit(1.0)
        factors = {name: each if plain(name) in PER_NODE else one for name in table.lists}
        yield cells.listed_gpus(factors).alias("_gpus")
    if "type" not in has and table.lists:
        yield cells.listed_type(table.lists).alias("_type")


def settle(frame: pl.LazyFrame, table: JobTable) -> pl.LazyFrame:
    """GPUs in whole ones, durations from whatever says them."""
    has = table.columns
    gpus = pl.col("_gpus")
    if "gpus" in has and plain(has["gpus"]) in PERCENT:
        gpus = gpus / 100.0
    if "workers" in has:
        gpus = gpus * pl.col("_workers").fill_null(1.0)
    lasts = [pl.col("_duration")] if "duration" in has else []
    if {"start", "end"} <= has.keys():
        # Slurm says 0 s of jobs that have not started.
        began = pl.col("_start").is_not_null()
        lasts = [pl.col("_end") - pl.col("_start"), *(pl.when(began).then(one) for one in lasts)]
    limits = [pl.col(f"_{name}") for name in ("limits", "limit") if name in has]
    return frame.with_columns(
        pl.coalesce([*lasts, pl.lit(None, pl.Float64)]).alias("_lasts"),
        pl.coalesce([*limits, pl.lit(None, pl.Float64)]).alias("_limit_s"),
        gpus.alias("_gpus"),
    )

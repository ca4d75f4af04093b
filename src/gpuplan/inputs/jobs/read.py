"""A job trace in, `Jobs` out: extra columns are passed over, wrong cells named by line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from gpuplan.domain.cluster.jobs import ANY, JobNeeds, Jobs, JobTerms
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.errors import InputError, Problem, one
from gpuplan.inputs.jobs.cells import clean
from gpuplan.inputs.jobs.kubernetes import kubernetes_rows
from gpuplan.inputs.jobs.philly import is_philly, philly_rows
from gpuplan.inputs.jobs.table import JobTable, expressions, settle, table_of
from gpuplan.units import DAY, MIB, WEEK

MAX_SHOWN = 10
MOST_GPUS, MOST_S = 1e6, 1e13  # of one job; instants are counted in seconds
DELIMITERS = ("|", ",", "\t", ";")
MONDAY_S = 4 * DAY  # the epoch began on a Thursday
EPOCH_FROM = 3e8  # smaller times are counted from the start of the trace
# Files of PAI 2020 come without a header.
PAI_HEADERS = {
    "pai_task_table": "job_name,task_name,inst_num,status,start_time,end_time,"
    "plan_cpu,plan_mem,plan_gpu,gpu_type",
}
FIX = "give columns such as submit_s,duration_s,gpus,team; or start and end for the duration"


def read_jobs(path: Path) -> Jobs:
    """Jobs of any known trace, in order of submission; times count from the first one."""
    try:
        return _read(path)
    except pl.exceptions.PolarsError as error:  # it reads lazily: faults show where rows are used
        what = f"cannot be read as a table: {str(error).splitlines()[0]}"
        raise one(InputError, "jobs", str(path), what, FIX) from None


def job_parts(path: Path, n_rows: int) -> tuple["StreamHead", Iterator[Jobs]]:
    """The same part by part, for traces larger than memory, which must be in order of submission.

    Names of teams and GPU types, the first and the last submission come from a first look.
    """
    read, table = _checked(path)
    names = {m: _known(read, f"_{m}") for m in ("team", "type", "profile") if m in table.columns}
    if "type" not in names and table.lists:
        names["type"] = _known(read, "_type")
    bounds = read.select(pl.col("_submit").min().alias("a"), pl.col("_submit").max().alias("b"))
    first, last = bounds.collect(engine="streaming").row(0)
    if first is None:
        raise one(InputError, "jobs", str(path), "holds no job that ran on GPUs", FIX)
    origin = Origin(float(first), {f"_{m}": known for m, known in names.items()})
    teams = tuple(names.get("team", ["all"]))
    head = StreamHead(team_names=teams, span_s=float(last - first))
    return head, _parts(path, read, table, origin, n_rows)


class StreamHead(NamedTuple):
    """What is known of a trace before its jobs are read."""

    team_names: tuple[str, ...]
    span_s: float


class Origin(NamedTuple):
    """The instant that times are counted from, and the names that codes stand for."""

    zero_s: float
    names: dict[str, list[str]]


def _known(read: pl.LazyFrame, name: str) -> list[str]:
    empty = "all" if name == "_team" else ""
    found = read.select(pl.col(name).fill_null(empty).unique()).collect(engine="streaming")
    return sorted(found[name].to_list())


def _parts(
    path: Path, read: pl.LazyFrame, table: JobTable, origin: Origin, n_rows: int
) -> Iterator[Jobs]:
    last_s = -np.inf
    for rows in read.collect_batches(chunk_size=n_rows, maintain_order=True):
        if rows["_submit"].is_not_null().any():
            part = _jobs(path, rows, table, origin)
            if len(part) and part.arrive_s[0] < last_s:
                what, fix = "is not in order of submission", "sort it by that column"
                raise one(InputError, "jobs", str(path), what, fix)
            last_s = float(part.arrive_s[-1]) if len(part) else last_s
            yield part


def _read(path: Path) -> Jobs:
    read, table = _checked(path)
    return _jobs(path, read.collect(), table)


def _checked(path: Path) -> tuple[pl.LazyFrame, JobTable]:
    """Rows with the known columns; InputError where a cell is not what its column holds."""
    frame, names, first_line = _scanned(path)
    table = table_of(names)
    if "submit" not in table.columns and "start" in table.columns:
        # PAI's tables say when work started and not when it was submitted.
        table = table._replace(columns={**table.columns, "submit": table.columns["start"]})
    if not table.is_enough:
        shown = ", ".join(names[:12])
        raise one(InputError, "jobs", str(path), f"has columns {shown}", FIX)
    raw = frame.with_row_index("_line", offset=first_line)
    read = settle(raw.with_columns(list(expressions(table))), table)
    retained = ["_line", "_lasts", "_limit_s", "_gpus"]
    retained += [f"_{m}" for m in table.columns if f"_{m}" not in retained]
    retained += ["_type"] if "type" not in table.columns and table.lists else []
    wrong = _wrong(path, read, table)
    if wrong:
        raise InputError(str(path), wrong)
    return read.select(retained), table


def _scanned(path: Path) -> tuple[pl.LazyFrame, list[str], int]:
    """The table as text, its columns, and the line of its first row."""
    try:
        if path.suffix == ".parquet":
            frame = pl.scan_parquet(path)
            return frame, frame.collect_schema().names(), 1
        with path.open("rb") as file:
            head = file.read(65536)
    except (OSError, pl.exceptions.PolarsError) as error:
        what, fix = f"cannot be read: {error}", "give a file that exists"
        raise one(InputError, "jobs", str(path), what, fix) from None
    if head.lstrip()[:1] in (b"{", b"["):
        frame = _json_frame(path)
        return frame, frame.collect_schema().names(), 1
    return _text_table(path, head)


def _json_frame(path: Path) -> pl.LazyFrame:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        rows = philly_rows(document) if is_philly(document) else kubernetes_rows(document)
        return pl.LazyFrame(rows)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        why = f"a part is missing or of another kind ({type(error).__name__})"
    except ValueError as error:
        why = str(error)
    fix = "give what kubectl get pods -A -o json or kubectl get workloads prints, or Philly's log"
    raise one(InputError, "jobs", str(path), f"is no list of jobs: {why}", fix)


def _text_table(path: Path, head: bytes) -> tuple[pl.LazyFrame, list[str], int]:
    names = PAI_HEADERS.get(path.name.split(".")[0], "").split(",")
    is_bare = names != [""]
    is_packed = head[:2] == b"\x1f\x8b"
    line = "" if is_packed else head.split(b"\n")[0].decode("utf-8-sig", "replace")
    delimiter = max(DELIMITERS, key=line.count) if line else ","
    if line.count(delimiter) == 0 and len(line.split()) > 2:  # as squeue prints by default
        cells = [row.split() for row in path.read_text("utf-8", "replace").splitlines()]
        rows = [dict(zip(cells[0], row, strict=False)) for row in cells[1:] if row]
        return pl.LazyFrame(rows, schema=dict.fromkeys(cells[0], pl.String)), cells[0], 2
    try:
        frame = pl.scan_csv(
            path,
            has_header=not is_bare,
            new_columns=names if is_bare else None,
            separator=delimiter,
            infer_schema=False,
            truncate_ragged_lines=True,
            quote_char=None if delimiter == "|" else '"',
            encoding="utf8-lossy",
        )
        return frame, frame.collect_schema().names(), 1 if is_bare else 2
    except (OSError, pl.exceptions.PolarsError) as error:
        raise one(InputError, "jobs", str(path), f"is no table: {error}", FIX) from None


def _wrong(path: Path, read: pl.LazyFrame, table: JobTable) -> list[Problem]:
    """Cells that say something and are not what their column holds."""
    checked = [m for m in ("submit", "start", "end", "duration", "gpus") if m in table.columns]
    problems: list[Problem] = []
    for meaning in checked:
        name = table.columns[meaning]
        cell = clean(name)
        is_bad = cell.is_not_null() & pl.col(f"_{meaning}").is_null()
        figure = pl.col(f"_{meaning}")
        is_bad |= figure.is_nan() | (figure.abs() > (MOST_GPUS if meaning == "gpus" else MOST_S))
        if meaning in ("duration", "gpus"):
            is_bad |= figure < 0
        bad = read.filter(is_bad).select("_line", pl.col(name)).head(MAX_SHOWN).collect()
        for line, value in bad.iter_rows():
            what = (
                f"{value!r} is no {'time' if meaning in ('submit', 'start', 'end') else 'number'}"
            )
            problems.append(Problem(f"line {line}, {name}", what, "fix the cell or remove the row"))
    return problems[:MAX_SHOWN]


def _jobs(path: Path, rows: pl.DataFrame, table: JobTable, origin: Origin | None = None) -> Jobs:
    remarks = []
    if "job" in table.columns:
        is_step = rows["_job"].str.contains(".", literal=True).fill_null(value=False)
        rows = rows.filter(~is_step)
    rules = (
        ("jobs without a time of submission", pl.col("_submit").is_null()),
        ("jobs without GPUs", pl.col("_gpus").fill_null(0.0) <= 0),
        ("jobs that never ran", pl.coalesce("_lasts", "_limit_s").fill_null(0.0) <= 0),
    )
    for what, is_out in rules:
        n = rows.filter(is_out).height
        if n:
            remarks.append(f"passed over {what}: {n:,}")
            rows = rows.filter(~is_out)
    n_guessed = rows["_lasts"].is_null().sum()
    if n_guessed:
        remarks.append(f"not ended, taken to run to their time limit: {n_guessed:,}")
    rows = rows.with_columns(pl.coalesce("_lasts", "_limit_s").alias("_lasts"))
    if rows.height == 0 and origin is None:
        raise one(InputError, "jobs", str(path), "holds no job that ran on GPUs", FIX)
    rows = rows.sort("_submit", maintain_order=True)
    origin = origin or Origin(float(rows["_submit"][0]), {})
    return replace(_columns(rows, table, origin), remarks=tuple(remarks))


def _columns(rows: pl.DataFrame, table: JobTable, origin: Origin) -> Jobs:
    submit, zero_s, known = rows["_submit"].to_numpy(), origin.zero_s, origin.names
    gpus = rows["_gpus"].to_numpy()
    team, team_names = _coded(rows, "_team", "all", known)
    needs, terms = _needs(rows, table, gpus, known), _terms(rows, table, zero_s)
    is_epoch = zero_s > EPOCH_FROM
    return Jobs(
        arrive_s=floats(submit - zero_s),
        duration_s=floats(rows["_lasts"].to_numpy()),
        n_accelerators=ints(np.maximum(np.ceil(gpus), 1)),
        team=team,
        team_names=team_names,
        needs=needs,
        terms=terms,
        week_s=(zero_s - MONDAY_S) % WEEK if is_epoch else 0.0,
    )


def _coded(
    rows: pl.DataFrame, name: str, empty: str, known: dict[str, list[str]]
) -> tuple[Ints, tuple[str, ...]]:
    """A column of names as places in the sorted list of them, which a stream knows before."""
    if name not in rows.columns:
        return ints(np.zeros(rows.height, np.int64)), (empty,)
    cell = rows[name].fill_null(empty)
    names = known.get(name) or sorted(cell.unique().to_list())
    codes = cell.replace_strict(names, list(range(len(names))), return_dtype=pl.Int64)
    return ints(codes.to_numpy()), tuple(names)


def _types(
    rows: pl.DataFrame, known: dict[str, list[str]], column: str
) -> tuple[Ints, tuple[str, ...]]:
    """GPU types or MIG profiles by name; several with a bar between them count as any."""
    if column not in rows.columns or rows[column].null_count() == rows.height:
        return ints([]), ()
    codes, names = _coded(rows, column, "", known)
    is_one = np.array([bool(name) and "|" not in name for name in names])
    place = np.where(is_one, np.cumsum(is_one) - 1, ANY)
    return ints(place[codes]), tuple(n for n, ok in zip(names, is_one, strict=True) if ok)


def _needs(
    rows: pl.DataFrame, table: JobTable, gpus: Floats, known: dict[str, list[str]]
) -> JobNeeds:
    has, n = table.columns, rows.height
    share = np.where(gpus < 1, gpus, 1.0)
    if "milli" in has:
        milli = rows["_milli"].fill_null(1000.0).to_numpy()
        share = np.where((gpus == 1) & (milli > 0) & (milli < 1000), milli / 1000, share)
    if "share" in has:
        share = rows["_share"].fill_null(1.0).to_numpy()
    cpus = rows["_cpus"].fill_null(0.0).to_numpy() if "cpus" in has else np.zeros(n)
    if "cpumilli" in has:
        cpus = rows["_cpumilli"].fill_null(0.0).to_numpy() / 1000
    ram: Any = rows["_rammib"].fill_null(0.0).to_numpy() * MIB if "rammib" in has else []
    accelerator, accelerator_names = _types(rows, known, "_type")
    profile, profile_names = _types(rows, known, "_profile")
    return JobNeeds(
        accelerator=accelerator,
        accelerator_names=accelerator_names,
        share_frac=floats(share) if (share < 1).any() else floats([]),
        profile=profile,
        profile_names=profile_names,
        n_cpus=floats(cpus) if cpus.any() else floats([]),
        ram_bytes=floats(ram),
    )


def _terms(rows: pl.DataFrame, table: JobTable, zero_s: float) -> JobTerms:
    has, lasts = table.columns, rows["_lasts"].to_numpy()
    limit = rows["_limit_s"].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def filled(name: str, default: float) -> Any:
        return rows[f"_{name}"].fill_null(default).to_numpy() if name in has else np.empty(0)

    return JobTerms(
        priority=ints(np.round(filled("priority", 0.0))),
        deadline_s=floats(filled("deadline", 1e300) - zero_s),
        limit_s=floats([] if np.isnan(limit).all() else np.where(np.isnan(limit), lasts, limit)),
        checkpoint_s=floats(filled("checkpoint", 0.0)),
    )

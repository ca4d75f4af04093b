"""The door: a file of any known kind, or a live server, becomes telemetry."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpuplan.domain.observation import Telemetry
from gpuplan.errors import InputError, one
from gpuplan.observe import schedulers, special, text_logs
from gpuplan.observe.collect import Collector
from gpuplan.observe.exposition import exposition_samples, looks_like_exposition
from gpuplan.observe.formats import format_of, plain
from gpuplan.observe.prometheus_json import is_prometheus_json, json_samples
from gpuplan.observe.samples import take_samples
from gpuplan.observe.tables import take_rows

MAX_TEXT_BYTES = 2**30  # of a text file, unpacked; larger ones belong into Parquet
HEAD_CHARS = 65536
KNOWN = (
    "Prometheus text or JSON, DCGM CSV, nvidia-smi or amd-smi CSV, vLLM logs, Slurm or Kubernetes "
    "lists, Parquet, or a table of minutes and percent"
)


def read_telemetry(path: Path) -> Telemetry:
    """Everything that a file says in the vocabulary, with its quirks."""
    if not path.is_file():
        raise one(InputError, str(path), "telemetry", "no such file", f"give {KNOWN}")
    if path.suffix == ".parquet":
        from gpuplan.observe.parquet import read_parquet  # noqa: PLC0415

        return read_parquet(path)
    return read_text(_text(path), source=str(path), name=path.name)


def read_text(text: str, *, source: str, name: str = "") -> Telemetry:
    """The same, of a text that is already here; the file's name helps where nothing else does."""
    for reader in (_json, _marked_text, _csv):
        found = reader(text, source, name)
        if found is not None:
            return found
    raise one(InputError, source, "telemetry", "the format is not known", f"give {KNOWN}")


def _text(path: Path) -> str:
    with path.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if is_packed else path.open("rb") as stream:
        data = stream.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        fix = "convert it to Parquet, which is read in parts"
        raise one(InputError, str(path), "telemetry", "more than 1 GiB of text", fix)
    return data.decode("utf-8", errors="replace").removeprefix("\ufeff")


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


def _json(text: str, source: str, name: str) -> Telemetry | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return None
    if is_prometheus_json(document):
        collector = Collector(source, "Prometheus JSON")
        take_samples(collector, json_samples(document, collector))
        return collector.finish()
    if schedulers.is_kubernetes(document):
        collector = Collector(source, "Kubernetes list")
        schedulers.take_kubernetes(collector, document)
        return collector.finish()
    return _records(document, source)


def _records(document: Any, source: str) -> Telemetry | None:
    """A list of objects, or an object of objects: rows of a table."""
    rows = list(document.values()) if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], Mapping):
        return None
    filled = [{key: "" if cell is None else cell for key, cell in row.items()} for row in rows]
    return _table(list(rows[0]), filled, source)


def _table(
    columns: list[str], rows: Iterable[Mapping[str, object]], source: str
) -> Telemetry | None:
    layout = format_of(tuple(plain(column) for column in columns))
    if layout is None:
        return None
    collector = Collector(source, layout.name)
    take_rows(collector, layout, columns, rows)
    return collector.finish()


# ── text that is no table ────────────────────────────────────────────────────────────────────────


def _marked_text(text: str, source: str, name: str) -> Telemetry | None:
    head = text[:HEAD_CHARS]
    if looks_like_exposition(head):
        collector = Collector(source, "Prometheus text")
        take_samples(collector, exposition_samples(text, collector))
        return collector.finish()
    if (tables := list(text_logs.capture_tables(text))) != []:
        return _captures(tables, source)
    if text_logs.has_engine_lines(text):
        collector = Collector(source, "vLLM log")
        text_logs.take_engine_log(collector, text)
        return collector.finish()
    if text_logs.has_xid_lines(text):
        collector = Collector(source, "kernel log")
        text_logs.take_kernel_log(collector, text)
        return collector.finish()
    if len(rows := text_logs.pasted_rows(text)) > 0:
        collector = Collector(source, "minutes and percent")
        text_logs.take_pasted(collector, rows)
        return collector.finish()
    return _scheduler(text, source)


def _captures(tables: list[list[str]], source: str) -> Telemetry | None:
    collector = Collector(source, "nvidia-smi capture")
    for lines in tables:
        reader = csv.DictReader(lines, skipinitialspace=True)
        columns = list(reader.fieldnames or ())
        layout = format_of(tuple(plain(column) for column in columns))
        if layout is not None:
            take_rows(collector, layout, columns, list(reader))
    return collector.finish()


def _scheduler(text: str, source: str) -> Telemetry | None:
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    kinds = (
        (schedulers.is_sacct, schedulers.take_sacct, "sacct"),
        (schedulers.is_sinfo, schedulers.take_sinfo, "sinfo"),
        (schedulers.is_squeue, schedulers.take_squeue, "squeue"),
    )
    for is_it, take, kind in kinds:
        if is_it(first):
            collector = Collector(source, f"Slurm {kind}")
            take(collector, [line for line in lines if line.strip()])
            return collector.finish()
    return None


# ── comma-separated values ───────────────────────────────────────────────────────────────────────


def _csv(text: str, source: str, name: str) -> Telemetry | None:
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    try:
        columns = list(reader.fieldnames or ())
    except csv.Error:
        return None
    plains = [plain(column) for column in columns]
    word = special.file_word(name) if {"value", "timestamp_anon"} <= set(plains) else None
    if word is not None:
        collector = Collector(source, "one metric by pod")
        special.take_values(collector, word, reader)
        return collector.finish()
    kinds = (
        (special.is_long, special.take_long, "DCGM rows"),
        (special.is_distribution, special.take_distribution, "distributions"),
        (special.is_job_list, special.take_jobs, "job list"),
    )
    for is_it, take, kind in kinds:
        if is_it(columns):
            collector = Collector(source, kind)
            take(collector, reader)
            return collector.finish()
    return _table(columns, reader, source)

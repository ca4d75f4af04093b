"""The door: a file of any known kind, or a live server, becomes telemetry."""

import csv
import gzip
import io
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gpuplan.domain.telemetry.monitoring import LiveSource
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError, one
from gpuplan.observe import aiperf, inventories, pasted, schedulers, slurm_text, special, text_logs
from gpuplan.observe.collect import Collector
from gpuplan.observe.exposition import (
    exposition_samples,
    is_prometheus_json,
    json_samples,
    looks_like_exposition,
)
from gpuplan.observe.formats import format_of, plain
from gpuplan.observe.guard import guarded, json_document
from gpuplan.observe.samples import take_samples
from gpuplan.observe.tables import take_rows

MAX_TEXT_BYTES = 2**30  # of a text file, unpacked; larger ones belong into Parquet
HEAD_CHARS = 65536
KNOWN = (
    "Prometheus text or JSON, DCGM CSV, nvidia-smi or amd-smi CSV, vLLM logs, Slurm or Kubernetes "
    "lists, Parquet, or a table of minutes and percent"
)


def read_source(source: Path | LiveSource) -> Telemetry:
    """The telemetry of a file, or of a live Prometheus-compatible server."""
    if isinstance(source, LiveSource):
        from gpuplan.observe.prometheus_live import read_prometheus  # noqa: PLC0415

        return read_prometheus(source.access, source.window)
    return read_telemetry(source)


def read_telemetry(path: Path) -> Telemetry:
    """Everything that a file says in the vocabulary, with its quirks."""
    if not path.is_file():
        raise one(InputError, str(path), "telemetry", "no such file", f"give {KNOWN}")
    with guarded(str(path)):
        if path.suffix == ".parquet":
            from gpuplan.observe.tables import read_parquet  # noqa: PLC0415

            return read_parquet(path)
        return _read_text(_text(path), str(path), path.name)


def read_text(text: str, *, source: str, name: str = "") -> Telemetry:
    """The same, of a text that is already here; the file's name helps where nothing else does."""
    with guarded(source):
        return _read_text(text, source, name)


def _read_text(text: str, source: str, name: str) -> Telemetry:
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
    if data[257:262] == b"ustar":
        data = _only_member(data, path)
    if len(data) > MAX_TEXT_BYTES:
        fix = "convert it to Parquet, which is read in parts"
        raise one(InputError, str(path), "telemetry", "more than 1 GiB of text", fix)
    return data.decode("utf-8", errors="replace").removeprefix("\ufeff")


def _only_member(data: bytes, path: Path) -> bytes:
    """The only file of an archive, under the heading that lies beside it as NAME.header."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        stream = archive.extractfile(members[0]) if len(members) == 1 else None
        if stream is None:
            what = f"an archive of {len(members)} files"
            raise one(InputError, str(path), "telemetry", what, "unpack it and give one of them")
        inside = stream.read(MAX_TEXT_BYTES + 1)
    heading = path.with_name(f"{path.name.partition('.')[0]}.header")
    return (heading.read_bytes().strip() + b"\n" if heading.is_file() else b"") + inside


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


def _json(text: str, source: str, name: str) -> Telemetry | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        document = json_document(text)
    except ValueError:
        return None
    if is_prometheus_json(document):
        collector = Collector(source, "Prometheus JSON")
        take_samples(collector, json_samples(document, collector))
        return collector.finish()
    if schedulers.is_kubernetes(document):
        collector = Collector(source, "Kubernetes list")
        schedulers.take_kubernetes(collector, document)
        return collector.finish()
    kinds = (
        (inventories.is_spot, inventories.take_spot, "capacity that could be had"),
        (inventories.is_faults, inventories.take_faults, "faults of nodes"),
        (inventories.is_demand, inventories.take_demand, "demand by the day"),
        (aiperf.is_figures, aiperf.take_figures, "AIPerf figures"),
    )
    for is_it, take, kind in kinds:
        if is_it(document):
            collector = Collector(source, kind)
            take(collector, document)
            return collector.finish()
    return _records(document, source)


def _records(document: Any, source: str) -> Telemetry | None:
    """A list of objects, or an object of objects: rows of a table."""
    rows = list(document.values()) if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows or not all(isinstance(r, Mapping) for r in rows):
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


_Kind = tuple[Callable[[str], bool], Callable[[Collector, str], None], str]
_TEXTS: tuple[_Kind, ...] = (
    (text_logs.has_engine_lines, text_logs.take_engine_log, "vLLM log"),
    (text_logs.has_fabric_lines, text_logs.take_fabric_log, "fabric manager log"),
    (text_logs.has_xid_lines, text_logs.take_kernel_log, "kernel log"),
    (text_logs.is_kernel_log, text_logs.take_kernel_log, "kernel log"),
    (aiperf.is_export, aiperf.take_export, "AIPerf export"),
    (aiperf.is_console, aiperf.take_console, "AIPerf console"),
    (aiperf.is_records, aiperf.take_records, "AIPerf requests"),
    (slurm_text.is_sdiag, slurm_text.take_sdiag, "Slurm sdiag"),
)


def _marked_text(text: str, source: str, name: str) -> Telemetry | None:
    if looks_like_exposition(text[:HEAD_CHARS]):
        collector = Collector(source, "Prometheus text")
        take_samples(collector, exposition_samples(text, collector))
        return collector.finish()
    if (tables := list(text_logs.capture_tables(text))) != []:
        return _captures(tables, source)
    for is_it, take, kind in _TEXTS:
        if is_it(text):
            collector = Collector(source, kind)
            take(collector, text)
            return collector.finish()
    if (found := pasted.pasted(text)).rows:
        collector = Collector(source, "minutes and percent")
        pasted.take_pasted(collector, found)
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
        (slurm_text.is_bare_sacct, slurm_text.take_bare_sacct, "sacct"),
        (slurm_text.is_seff, slurm_text.take_seff, "seff"),
        (slurm_text.is_processes, slurm_text.take_processes, "scontrol"),
        (slurm_text.is_shares, slurm_text.take_shares, "sshare"),
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


def _tidy(text: str) -> str:
    """Lines as CSV has them: a stray carriage return is white space in a cell, it ends no row."""
    if "\n" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", " ").replace("\0", "")


def _csv(text: str, source: str, name: str) -> Telemetry | None:
    reader = csv.DictReader(io.StringIO(_tidy(text)), skipinitialspace=True)
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
        (inventories.is_machines, inventories.take_machines, "machines"),
        (inventories.is_pods, inventories.take_pods, "pods"),
        (inventories.is_quotas, inventories.take_quotas, "accelerators by team"),
    )
    for is_it, take, kind in kinds:
        if is_it(columns):
            collector = Collector(source, kind)
            take(collector, reader)
            found = collector.finish()
            # A heading alone says nothing.
            return found if found.subjects or found.allocations or found.quirks else None
    return _table(columns, reader, source)

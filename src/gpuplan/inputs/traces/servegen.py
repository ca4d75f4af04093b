"""ServeGen's clients: windows of rate and burstiness, and histograms of lengths.

Two layouts: Parquet tables of rates and lengths, or as the authors publish them, two files per
client in one folder. `chunk-N-trace.csv` has no header: start, rate, CV of inter-arrival times,
distribution, two parameters; `chunk-N-dataset.json` has, by start of window, histograms written as
Python mappings in text. Rates come by 10 minutes, lengths by 6 hours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, floats, ints
from gpuplan.domain.traffic.trace import Client, ClientMix, LengthWindow
from gpuplan.inputs.traces.clock import numbers
from gpuplan.inputs.traces.parquet_trace import broken, polars
from gpuplan.inputs.traces.rows import Findings
from gpuplan.inputs.traces.source import document_of, fault, lines_of, text_of

WINDOW_S = 600.0
RATES = ("category", "model", "client", "t_s", "rate_rps", "iat_cv", "family")
LENGTHS = ("category", "model", "client", "t_s", "field", "value", "prob")
N_CELLS = 6
Histogram = tuple[Floats, Floats]  # values and weights


class MixRead(NamedTuple):
    """Clients of one service, and what was odd."""

    mix: ClientMix
    remarks: tuple[str, ...]


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
    pl = polars()
    column = pl.scan_parquet(rates).select(pl.col("model").cast(pl.String).unique()).collect()
    return sorted(column["model"].to_list())


def read_servegen(rates: Path, lengths: Path, *, model: str) -> MixRead:
    """The clients of one model; InputError where the tables are not ServeGen's, or lack it."""
    windows = _rows(rates, RATES, model)
    known: dict[int, dict[float, dict[str, Any]]] = {}
    for row in _rows(lengths, LENGTHS, model).iter_rows(named=True):
        fields = known.setdefault(row["client"], {}).setdefault(row["t_s"], {})
        fields[str(row["field"])] = (floats(row["value"]), floats(row["prob"]))
    clients = [
        _client(
            str(number),
            rows.select("t_s", "rate_rps", "iat_cv").to_numpy(),
            rows["family"].to_list(),
            lengths=_table_lengths(known.get(int(str(number)), {})),
        )
        for (number,), rows in windows.group_by("client", maintain_order=True)
    ]
    if not clients:
        raise fault(rates, f"has no client of model {model!r}", "name one that it has")
    return _read(clients)


def read_servegen_folder(folder: Path) -> MixRead:
    """The clients of one model; InputError where the folder holds none that can be read."""
    try:
        traces = sorted(folder.glob("chunk-*-trace.csv"))
    except OSError as error:
        raise fault(folder, f"cannot be read: {error.strerror}", "give a folder") from None
    if not traces:
        what = "holds no chunk-*-trace.csv"
        raise fault(folder, what, "give the folder of one model, e.g. data/language/m-small")
    findings = Findings()
    clients = [_file_client(path, findings) for path in traces]
    bad: tuple[str, ...] = ()
    if findings.n_bad:
        bad = (f"{findings.n_bad:,} bad lines or windows are skipped, first {findings.bad[0]}",)
    return _read(clients, *bad)


def histogram(text: object) -> Histogram | None:
    """Values and weights of a mapping written as `{12: 0.5, 13: 0.5}`; None where it is none."""
    if not isinstance(text, str) or not text.strip().startswith("{"):
        return None
    pairs = [pair.partition(":") for pair in text.strip().strip("{}").split(",") if pair.strip()]
    values = numbers([pair[0].strip() for pair in pairs])
    weights = numbers([pair[2].strip() for pair in pairs])
    is_sound = len(pairs) and np.all(values >= 0) and np.all(weights >= 0) and weights.sum() > 0
    return (floats(values), floats(weights)) if is_sound else None


def _read(clients: Sequence[Client], *more: str) -> MixRead:
    n_bare = sum(not client.lengths for client in clients)
    notes = [f"{len(clients)} clients in windows of {WINDOW_S:g} s"]
    if n_bare:
        notes.append(f"{n_bare} of them have no lengths: drawn with those of the nearest in rate")
    return MixRead(ClientMix(window_s=WINDOW_S, clients=tuple(clients)), (*notes, *more))


def _client(
    name: str, table: Floats, families: Sequence[str], *, lengths: Iterator[LengthWindow]
) -> Client:
    """A client of windows (start, rate, CV), in order of time."""
    order = np.argsort(table[:, 0], kind="stable")
    return Client(
        name=name,
        start_s=floats(table[order, 0]),
        requests_per_s=floats(table[order, 1]),
        gap_cv_ratio=floats(table[order, 2]),
        is_weibull=ints([int(families[i] == "Weibull") for i in order]),
        lengths=tuple(lengths),
    )


def _length_window(start_s: float, n_input: Histogram, n_output: Histogram) -> LengthWindow:
    return LengthWindow(
        start_s=start_s,
        input_tokens=n_input[0],
        input_weight=n_input[1],
        output_tokens=n_output[0],
        output_weight=n_output[1],
    )


def _columns(path: Path) -> set[str]:
    pl = polars()
    try:
        return {*pl.scan_parquet(path).collect_schema().names()}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise fault(path, f"cannot be read: {error}"[:200], "give a Parquet table") from None


def _rows(path: Path, needed: tuple[str, ...], model: str) -> Any:
    pl = polars()
    try:
        frame = pl.scan_parquet(path)
        missing = [name for name in needed if name not in frame.collect_schema()]
        if missing:
            raise fault(path, f"has no column {', '.join(missing)}", "give ServeGen's tables")
        chosen = frame.filter(pl.col("model").cast(pl.String) == model).select(needed)
        rows: Any = chosen.sort("client", "t_s").collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise broken(path, error) from None
    return rows


def _table_lengths(windows: dict[float, dict[str, Any]]) -> Iterator[LengthWindow]:
    for start, fields in sorted(windows.items()):
        n_input = fields.get("input_tokens") or fields.get("text_tokens")
        n_output = fields.get("output_tokens")
        if n_input and n_output and sum(n_input[1]) > 0 and sum(n_output[1]) > 0:
            yield _length_window(float(start), n_input, n_output)


def _file_client(path: Path, findings: Findings) -> Client:
    name = path.name.removeprefix("chunk-").removesuffix("-trace.csv")
    rows = list(_windows(path, findings))
    table = np.array([row[:3] for row in rows], dtype=np.float64).reshape(-1, 3)
    file = path.with_name(f"chunk-{name}-dataset.json")
    lengths = _file_lengths(file, findings) if file.exists() else iter(())
    return _client(name, table, [row[3] for row in rows], lengths=lengths)


def _windows(path: Path, findings: Findings) -> Iterator[tuple[float, float, float, str]]:
    with text_of(path) as text:
        for number, line in enumerate(lines_of(path, text), start=1):
            cells = line.split(",")
            start, rate, cv = numbers([*cells[:3], "", "", ""][:3])
            if len(cells) == N_CELLS and np.isfinite(start) and rate >= 0 and cv >= 0:
                yield float(start), float(rate), float(cv), cells[3].strip()
            elif line.strip():
                fix = "start, rate, CV, distribution and two parameters"
                findings.note_bad(f"{path.name} line {number}", "is no window", fix)


def _file_lengths(path: Path, findings: Findings) -> Iterator[LengthWindow]:
    try:
        windows = json.loads(document_of(path))
    except (ValueError, RecursionError) as error:
        raise fault(path, f"is no JSON: {str(error)[:80]}", "fetch it again") from None
    known = windows if isinstance(windows, dict) else {}
    for start in sorted(known, key=lambda key: float(numbers([key])[0])):
        fields = known[start] if isinstance(known[start], Mapping) else {}
        n_input = histogram(fields.get("input_tokens", fields.get("text_tokens")))
        n_output = histogram(fields.get("output_tokens"))
        start_s = float(numbers([start])[0])
        if n_input is None or n_output is None or not np.isfinite(start_s):
            findings.note_bad(f"{path.name} window {start[:20]}", "is unclear", "fetch it again")
        else:
            yield _length_window(start_s, n_input, n_output)

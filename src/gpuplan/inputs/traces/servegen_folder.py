"""ServeGen's clients as its authors publish them: two files per client in one folder.

`chunk-N-trace.csv` has no header: start, rate, deviation over mean of gaps, law, two parameters.
`chunk-N-dataset.json` has, by start of window, histograms written as Python mappings in text.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.domain.columns import Floats, floats, ints
from gpuplan.domain.traffic.mix import Client, ClientMix, LengthWindow
from gpuplan.inputs.traces.clock import numbers
from gpuplan.inputs.traces.rows import Findings
from gpuplan.inputs.traces.servegen import WINDOW_S, MixRead
from gpuplan.inputs.traces.source import document_of, fault, lines_of, text_of

N_CELLS = 6


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
    clients = tuple(_client(path, findings) for path in traces)
    n_bare = sum(not client.lengths for client in clients)
    told = [f"{len(clients)} clients in windows of {WINDOW_S:g} s"]
    if n_bare:
        told.append(f"{n_bare} of them have no lengths: drawn with those of the nearest in rate")
    if findings.n_bad:
        told.append(
            f"{findings.n_bad:,} bad lines or windows are left out, first {findings.bad[0]}"
        )
    return MixRead(ClientMix(window_s=WINDOW_S, clients=clients), tuple(told))


def _client(path: Path, findings: Findings) -> Client:
    name = path.name.removeprefix("chunk-").removesuffix("-trace.csv")
    rows = list(_windows(path, findings))
    table = np.array([row[:3] for row in rows], dtype=np.float64).reshape(-1, 3)
    order = np.argsort(table[:, 0], kind="stable")
    lengths = path.with_name(f"chunk-{name}-dataset.json")
    return Client(
        name=name,
        start_s=floats(table[order, 0]),
        requests_per_s=floats(table[order, 1]),
        gap_cv_ratio=floats(table[order, 2]),
        is_weibull=ints([int(rows[i][3] == "Weibull") for i in order]),
        lengths=tuple(_lengths(lengths, findings)) if lengths.exists() else (),
    )


def _windows(path: Path, findings: Findings) -> Iterator[tuple[float, float, float, str]]:
    with text_of(path) as text:
        for number, line in enumerate(lines_of(path, text), start=1):
            cells = line.split(",")
            start, rate, cv = numbers([*cells[:3], "", "", ""][:3])
            if len(cells) == N_CELLS and np.isfinite(start) and rate >= 0 and cv >= 0:
                yield float(start), float(rate), float(cv), cells[3].strip()
            elif line.strip():
                fix = "start, rate, deviation, law and two parameters"
                findings.note_bad(f"{path.name} line {number}", "is no window", fix)


def _lengths(path: Path, findings: Findings) -> Iterator[LengthWindow]:
    try:
        windows = json.loads(document_of(path))
    except (ValueError, RecursionError) as error:
        raise fault(path, f"is no JSON: {str(error)[:80]}", "fetch it again") from None
    known = windows if isinstance(windows, dict) else {}
    for start in sorted(known, key=lambda key: float(numbers([key])[0])):
        window = _window(start, known[start])
        if window is None:
            findings.note_bad(f"{path.name} window {start[:20]}", "is unclear", "fetch it again")
        else:
            yield window


def _window(start: str, fields: Any) -> LengthWindow | None:
    if not isinstance(fields, Mapping):
        return None
    asked = histogram(fields.get("input_tokens", fields.get("text_tokens")))
    answered = histogram(fields.get("output_tokens"))
    start_s = float(numbers([start])[0])
    if asked is None or answered is None or not np.isfinite(start_s):
        return None
    return LengthWindow(
        start_s=start_s,
        input_tokens=asked[0],
        input_weight=asked[1],
        output_tokens=answered[0],
        output_weight=answered[1],
    )


def histogram(text: object) -> tuple[Floats, Floats] | None:
    """Values and weights of a mapping written as `{12: 0.5, 13: 0.5}`; None where it is none."""
    if not isinstance(text, str) or not text.strip().startswith("{"):
        return None
    pairs = [pair.partition(":") for pair in text.strip().strip("{}").split(",") if pair.strip()]
    values = numbers([pair[0].strip() for pair in pairs])
    weights = numbers([pair[2].strip() for pair in pairs])
    is_sound = len(pairs) and np.all(values >= 0) and np.all(weights >= 0) and weights.sum() > 0
    return (floats(values), floats(weights)) if is_sound else None

"""Step times of one's own: a formula as typed, or a table from a profile or a log -> `StepTimes`.

A table has one row per iteration: `tokens`, `step_s` (or `step_ms`), and where they are known
`context_tokens` (sum of the contexts of the sequences that decode) and `prefill_pairs` (prompt
tokens times the tokens before them). Rows may repeat: times of equal tokens are averaged.
"""

from pathlib import Path

import numpy as np

from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.simulation.engine import StepTimes
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.units import MS

TERMS = ("step_s", "token_s", "context_s", "pair_s")
ATTENTION = ("context_tokens", "prefill_pairs")


def read_step_times(text: str) -> StepTimes:
    """Of a formula as typed, or of the file that the text names."""
    is_formula = "=" in text and not Path(text).is_file()
    return step_times_in(text) if is_formula else read_step_table(Path(text))


def step_times_in(text: str) -> StepTimes:
    """step_s=0.008,token_s=2e-5,context_s=4e-8,pair_s=1e-9; what is left out is 0."""
    fix = f"write e.g. {TERMS[0]}=0.008,{TERMS[1]}=2e-5,{TERMS[2]}=4e-8,{TERMS[3]}=1e-9"
    try:
        pairs = [part.split("=", 1) for part in text.split(",")]
        given = {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise _wrong("--step-time", f"cannot read {text!r}", fix) from None
    unknown = [name for name in given if name not in TERMS]
    if unknown:
        raise _wrong("--step-time", f"unknown {', '.join(unknown)}", f"use {', '.join(TERMS)}")
    if any(not 0.0 <= value < np.inf for value in given.values()) or not any(given.values()):
        raise _wrong("--step-time", f"got {text!r}", "use times of 0 or more, one of them above 0")
    step_s, token_s, context_s, pair_s = (given.get(name, 0.0) for name in TERMS)
    return StepTimes(
        tokens=floats([0.0, 1.0]),
        step_s=floats([step_s, step_s + token_s]),
        context_s=context_s,
        pair_s=pair_s,
    )


def read_step_table(path: Path) -> StepTimes:
    """The curve over tokens that the rows give, with attention told apart where they allow it."""
    tokens, step_s, known = _columns(path)
    fitted, attention_s = _attention(tokens, step_s, known)
    bare_s = step_s - known @ attention_s
    sizes, at = np.unique(tokens, return_inverse=True)
    if len(sizes) < 2:
        what = f"{path} has iterations of {sizes[0]:g} tokens alone"
        fix = "give rows of at least two sizes: others are taken from the line through them"
        raise _wrong("--step-table", what, fix)
    curve_s = np.maximum(np.bincount(at, weights=bare_s) / np.bincount(at), 0.0)
    # Beyond the largest step that was seen, a token costs what it does on average.
    return StepTimes(
        tokens=floats([*sizes, sizes[-1] + 1.0]),
        step_s=floats([*curve_s, curve_s[-1] + max(0.0, fitted)]),
        context_s=float(attention_s[0]),
        pair_s=float(attention_s[1]),
    )


def _columns(path: Path) -> tuple[Floats, Floats, Floats]:
    """Tokens, seconds, and what attention has to do, by rows."""
    if not path.is_file():
        raise _wrong(
            "--step-table", f"{path} cannot be read: no such file", "give a CSV file that exists"
        )
    rows = read_csv_rows(path)
    names = set(rows[0]) if rows else set()
    time = next((name for name in ("step_s", "step_ms") if name in names), None)
    if "tokens" not in names or time is None:
        fix = f"write columns tokens, step_s (or step_ms), and perhaps {', '.join(ATTENTION)}"
        raise _wrong("--step-table", f"{path} has columns {', '.join(sorted(names))}", fix)
    wanted = ("tokens", time, *ATTENTION)
    try:
        cells = np.array([[float(row.get(name) or 0) for name in wanted] for row in rows])
    except ValueError as error:
        raise _wrong("--step-table", f"{path}: {error}", "write numbers alone") from None
    if not np.isfinite(cells).all() or (cells < 0).any() or not (cells[:, 1] > 0).all():
        raise _wrong("--step-table", f"{path} holds a figure below 0", "fix the rows")
    return cells[:, 0], cells[:, 1] * (MS if time == "step_ms" else 1.0), cells[:, 2:]


def _attention(tokens: Floats, step_s: Floats, known: Floats) -> tuple[float, Floats]:
    """Least squares: a token's time, and those of attention, none of which is below 0."""
    is_used = known.max(axis=0) > 0
    while True:
        design = np.column_stack([np.ones(len(tokens)), tokens, known[:, is_used]])
        scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
        found = np.linalg.lstsq(design / scale, step_s, rcond=None)[0] / scale
        if (found[2:] >= 0.0).all():
            break
        is_used[np.flatnonzero(is_used)[np.argmin(found[2:] * scale[2:])]] = False
    attention_s = np.zeros(2)
    attention_s[is_used] = found[2:]
    return float(found[1]), attention_s


def _wrong(flag: str, what: str, fix: str) -> PlannerError:
    return one(InputError, "simulate", flag, what, fix)

"""Two tables of measured runs, in: CSV files; out: figures paired by condition, and versions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

from gpuplan.csv_rows import read_csv_rows, words
from gpuplan.domain.calibration.runs import FingerprintChange, MetricChange, RunComparison
from gpuplan.errors import InputError, Problem, ViolationError, one

MEASURED = "measured_"
# Columns that say what ran, not what was asked of it.
FINGERPRINT = frozenset(words("studies.measured", "fingerprint"))
SILENT = frozenset({"id", "date", "measured_at", "source", "url", "role"})  # differ in every run
# Metrics of which more is worse; of all others less is.
LATER = words("studies.measured", "more_is_worse")
Row = Mapping[str, str]


def compare_runs(before: Path, after: Path, tolerance_frac: float) -> RunComparison:
    """Every figure that both runs measured under the same conditions; InputError without any."""
    old, new = _by_condition(before), _by_condition(after)
    rows = tuple(
        change
        for condition in old
        if condition in new
        for change in _changes(condition, old[condition], new[condition], tolerance_frac)
    )
    if not rows:
        what = "no condition and metric are in both tables"
        fix = "use the same columns, and measured_… columns with numbers"
        raise one(InputError, "diff", f"{before.name} and {after.name}", what, fix)
    return RunComparison(
        names=(before.name, after.name),
        rows=rows,
        fingerprint=tuple(_fingerprint(old, new)),
        unpaired=tuple(sorted(old.keys() ^ new.keys())),
        tolerance_frac=tolerance_frac,
    )


def refuse_regression(found: RunComparison) -> None:
    """Raise ViolationError with every figure that got worse beyond the tolerance."""
    problems = [
        Problem(row.condition, f"{row.metric} {row.n_before:g} to {row.n_after:g}", _cause(found))
        for row in found.rows
        if row.is_worse
    ]
    if problems:
        raise ViolationError(" to ".join(found.names), problems)


def _cause(found: RunComparison) -> str:
    changed = ", ".join(f"{x.what} {x.before} to {x.after}" for x in found.fingerprint)
    return f"look at what changed: {changed}" if changed else "nothing recorded changed: run again"


def _by_condition(path: Path) -> dict[str, list[Row]]:
    """Rows by what was asked of them; equal conditions are repetitions."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in read_csv_rows(path):
        requested = {
            name: value.strip()
            for name, value in row.items()
            if name not in FINGERPRINT and not name.startswith(MEASURED) and value.strip()
        }
        found[" ".join(f"{name}={value}" for name, value in sorted(requested.items()))].append(row)
    return dict(found)


def _changes(
    condition: str, old: Sequence[Row], new: Sequence[Row], tolerance_frac: float
) -> Iterator[MetricChange]:
    for name in dict.fromkeys(name for row in old for name in row if name.startswith(MEASURED)):
        before, after = _mean(old, name), _mean(new, name)
        if before is None or after is None or before == 0:
            continue
        metric = name.removeprefix(MEASURED)
        growth = after / before - 1.0
        loss = growth if any(word in metric for word in LATER) else -growth
        yield MetricChange(
            condition=condition,
            metric=metric,
            n_before=before,
            n_after=after,
            is_worse=loss > tolerance_frac + 1e-12,
        )


def _mean(rows: Sequence[Row], name: str) -> float | None:
    values = [value for row in rows if (value := _number(row.get(name, ""), name)) is not None]
    return sum(values) / len(values) if values else None


def _number(text: str, name: str) -> float | None:
    """A measured figure; an empty cell is none, anything else that is no number is an error."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise one(InputError, "diff", name, f"{text!r} is no number", "write a number or nothing")
    return value


def _fingerprint(
    old: Mapping[str, Sequence[Row]], new: Mapping[str, Sequence[Row]]
) -> Iterator[FingerprintChange]:
    columns = [name for rows in (*old.values(), *new.values()) for row in rows for name in row]
    for name in dict.fromkeys(columns):
        if name in FINGERPRINT - SILENT:
            before, after = _values(old, name), _values(new, name)
            if before != after:
                yield FingerprintChange(what=name, before=before, after=after)


def _values(runs: Mapping[str, Sequence[Row]], name: str) -> str:
    found = {row.get(name, "").strip() for rows in runs.values() for row in rows}
    return ", ".join(sorted(found - {""})) or "not recorded"

"""Print predicted against published training peaks, by source and role."""

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "validation"), str(ROOT / "tests")]

from training_memory_rows import CARD_BYTES, Row, rows  # noqa: E402

from gpuplan.units import GB  # noqa: E402
from shared_data import SHARED  # noqa: E402

PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "gathered", "temporary")


def main() -> None:
    found = rows(SHARED / "measured")
    for row in found:
        print(_line(row))
    print()
    _table(found)


def _line(row: Row) -> str:
    predicted = row.predicted_bytes / GB
    if row.measured_bytes is None:
        is_caught = row.memory.least_bytes > CARD_BYTES[row.card]
        verdict = "OOM ok" if is_caught else "OOM MISSED"
    else:
        verdict = f"{row.measured_bytes / GB:8.2f} {100 * row.error:+6.1f} %"
    memory = row.memory
    parts = " ".join(f"{name}={getattr(memory, name + '_bytes') / GB:.1f}" for name in PARTS)
    shape = f"b{row.setup.micro_batch} s{row.setup.sequence_tokens}"
    return (
        f"{row.id:10s} {row.source:15s} {row.model.name[-24:]:24s} {row.setup.task:8s}"
        f" {shape:12s} {predicted:8.2f} {verdict:18s} {parts} [{row.role}]"
    )


def _table(found: list[Row]) -> None:
    for role in ("fit", "holdout", "excluded"):
        chosen = [row for row in found if row.measured_bytes and _role(row) == role]
        for source in dict.fromkeys(row.source for row in chosen):
            print(_summary(role, source, [abs(r.error) for r in chosen if r.source == source]))
        print(_summary(role, "ALL", [abs(row.error) for row in chosen]))


def _role(row: Row) -> str:
    return row.role if row.role in ("fit", "holdout", "duplicate") else "excluded"


def _summary(role: str, source: str, errors: list[float]) -> str:
    ordered = sorted(errors)
    p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return (
        f"{role:9s} {source:16s} n={len(errors):3d} median {100 * statistics.median(errors):5.1f}"
        f" mean {100 * statistics.mean(errors):5.1f} p90 {100 * p90:5.1f}"
    )


if __name__ == "__main__":
    main()

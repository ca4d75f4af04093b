"""Print predicted against published training peaks, by source and role."""

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "validation"), str(ROOT / "tests")]

from shared_data import SHARED
from training_memory_rows import CARD_BYTES, Row, rows

from gpuplan.units import GB


def main() -> None:
    found = rows(SHARED / "measured")
    for row in found:
        print(_line(row))
    print()
    _table(found)


def _line(row: Row) -> str:
    predicted = row.predicted_bytes / GB
    if row.measured_bytes is None:
        verdict = "OOM ok" if row.memory.total_bytes > CARD_BYTES[row.card] else "OOM MISSED"
    else:
        verdict = f"{row.measured_bytes / GB:8.2f} {100 * row.error:+6.1f} %"
    m = row.memory
    parts = " ".join(
        f"{name}={getattr(m, name + '_bytes') / GB:.1f}"
        for name in ("weights", "gradients", "optimizer", "activations", "logits", "gathered", "temporary")
    )  # fmt: skip
    return (
        f"{row.id:10s} {row.source:15s} {row.model.name[-24:]:24s} {row.setup.task:8s}"
        f" b{row.setup.micro_batch} s{row.setup.sequence_tokens} {predicted:8.2f} {verdict:18s} {parts} [{row.role}]"
    )


def _table(found: list[Row]) -> None:
    for role in ("fit", "holdout", "excluded"):
        for source in dict.fromkeys(row.source for row in found):
            these = [
                abs(r.error)
                for r in found
                if r.source == source
                and r.measured_bytes
                and (r.role == role or (role == "excluded" and r.role not in ("fit", "holdout", "duplicate")))
            ]
            if these:
                print(_summary(role, source, these))
        pooled = [abs(r.error) for r in found if r.role == role and r.measured_bytes]
        if pooled:
            print(_summary(role, "ALL", pooled))


def _summary(role: str, source: str, errors: list[float]) -> str:
    ordered = sorted(errors)
    p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return (
        f"{role:9s} {source:16s} n={len(errors):3d} median {100 * statistics.median(errors):5.1f}"
        f" mean {100 * statistics.mean(errors):5.1f} p90 {100 * p90:5.1f}"
    )


if __name__ == "__main__":
    main()

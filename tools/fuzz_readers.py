"""Drawn and damaged inputs for every reader: each is read or refused, soon, and nothing else.

    python tools/fuzz_readers.py --runs 100000 [--seed 0] [--progress FILE]

Inputs are drawn from a seed and a number, so a failure can be repeated; the progress file keeps the
number reached, and the next run goes on there. A failure prints its reader, number and error, and
leaves the input beside the progress file.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from gpuplan.csv_rows import csv_rows  # noqa: E402
from gpuplan.errors import PlannerError  # noqa: E402
from gpuplan.inputs.documents.yaml_reader import read_yaml_text  # noqa: E402
from gpuplan.inputs.plan_file import plan_of  # noqa: E402
from gpuplan.inputs.traces.read import read_trace  # noqa: E402
from gpuplan.observe.read import read_telemetry, read_text  # noqa: E402
from hardening.spoiled import FILES  # noqa: E402

SLOW_S = 5.0  # CPU time of one input
PIECES = [
    "\0",
    "\x1b[31m",
    "9" * 5000,
    "1e300",
    "nan",
    "-1",
    '"',
    "{",
    "[" * 200,
    "\r",
    ",",
    "é",
    "null",
]


def _telemetry(data: bytes, folder: Path, name: str) -> None:
    path = folder / f"telemetry{Path(name).suffix}"
    path.write_bytes(data)
    read_telemetry(path)


def _trace(data: bytes, folder: Path, name: str) -> None:
    path = folder / f"trace{Path(name).suffix or '.csv'}"
    path.write_bytes(data)
    read_trace(path)


def _text(data: bytes, folder: Path, name: str) -> None:
    read_text(data.decode("utf-8", "replace"), source="fuzz", name=name)


def _yaml(data: bytes, folder: Path, name: str) -> None:
    plan_of(read_yaml_text(data.decode("utf-8", "replace"), name="fuzz"))


def _csv(data: bytes, folder: Path, name: str) -> None:
    csv_rows(data.decode("utf-8", "replace"), source="fuzz")


READERS: dict[str, Callable[[bytes, Path, str], None]] = {
    "telemetry": _telemetry,
    "trace": _trace,
    "pasted text": _text,
    "plan file": _yaml,
    "table": _csv,
}


def seeds() -> list[tuple[str, bytes]]:
    """Sound and spoiled files to begin with: made anew, not kept."""
    found = [(name, make()[:20_000]) for name, make in FILES.items()]
    examples = sorted((ROOT / "examples").glob("*.yaml"))
    return found + [(path.name, path.read_bytes()[:20_000]) for path in examples]


def drawn(number: int, seed: int, corpus: list[tuple[str, bytes]]) -> tuple[str, bytes]:
    """The input of this number."""
    draw = random.Random(f"{seed} {number}")
    name, data = draw.choice(corpus)
    hurt = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(hurt) + 1)
        kind = draw.randrange(4)
        if kind == 0:
            hurt[at:at] = draw.choice(PIECES).encode()
        elif kind == 1:
            del hurt[at : at + draw.randint(1, 200)]
        elif kind == 2 and hurt:
            hurt[at % len(hurt)] = draw.randrange(256)
        else:
            other = draw.choice(corpus)[1]
            hurt[at : at + draw.randint(0, 50)] = other[: draw.randint(0, 300)]
    return name, bytes(hurt)


def failure(reader: str, data: bytes, name: str, folder: Path) -> str:
    """What went wrong; empty if the input was read or refused in time."""
    begin_s = time.process_time()
    try:
        READERS[reader](data, folder, name)
    except PlannerError as error:
        if "\x1b" in str(error):
            return "an escape sequence in an error"
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what we look for)
        return f"{type(error).__name__}: {error}"
    spent_s = time.process_time() - begin_s
    return f"took {spent_s:.1f} s" if spent_s > SLOW_S else ""


def run(first: int, n: int, seed: int, told: Callable[[str, int, str, bytes], None]) -> int:
    """Try so many inputs in turn on the readers; how many failed."""
    corpus, names, n_failed = seeds(), list(READERS), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + n):
            reader = names[number % len(names)]
            name, data = drawn(number, seed, corpus)
            what = failure(reader, data, name, Path(folder))
            if what:
                n_failed += 1
                told(reader, number, what, data)
    return n_failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--progress", type=Path, default=Path("fuzz.progress"))
    asked = parser.parse_args()
    first = int(asked.progress.read_text()) if asked.progress.exists() else 0
    n_failed, step = 0, 1000

    def told(reader: str, number: int, what: str, data: bytes) -> None:
        print(f"{reader} {number}: {what}", flush=True)
        asked.progress.with_name(f"fuzz-{number}.input").write_bytes(data)

    for begin in range(first, first + asked.runs, step):
        n_failed += run(begin, min(step, first + asked.runs - begin), asked.seed, told)
        asked.progress.write_text(str(begin + step))
    print(f"{asked.runs:,} inputs from number {first:,}: {n_failed} failures")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

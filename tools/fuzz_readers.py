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

import yaml  # noqa: E402

from gpuplan.calibration.runs.detect import read_runs  # noqa: E402
from gpuplan.catalog.models import find_model  # noqa: E402
from gpuplan.csv_rows import csv_rows  # noqa: E402
from gpuplan.errors import PlannerError  # noqa: E402
from gpuplan.inputs.cluster import read_cluster  # noqa: E402
from gpuplan.inputs.documents.yaml_reader import read_yaml_text  # noqa: E402
from gpuplan.inputs.fleet import read_fleet  # noqa: E402
from gpuplan.inputs.jobs.read import read_jobs  # noqa: E402
from gpuplan.inputs.plan_file import plan_of  # noqa: E402
from gpuplan.inputs.scenario.read import scenario_of  # noqa: E402
from gpuplan.inputs.step_times import read_step_table  # noqa: E402
from gpuplan.inputs.traces.read import read_trace  # noqa: E402
from gpuplan.inputs.words.read import MAX_TEXT, described_scenario  # noqa: E402
from gpuplan.observe.read import read_telemetry, read_text  # noqa: E402
from gpuplan.studies.naming import lexicon  # noqa: E402
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


Reader = Callable[[bytes, Path, str], object]
WORDS = lexicon()


def _of_file(read: Callable[[Path], object], ending: str = "") -> Reader:
    """The reader of a path, given bytes."""

    def reader(data: bytes, folder: Path, name: str) -> object:
        path = folder / f"input{ending or Path(name).suffix or '.csv'}"
        path.write_bytes(data)
        return read(path)

    return reader


def _of_text(read: Callable[[str, str], object]) -> Reader:
    """The reader of a text, given bytes."""
    return lambda data, _, name: read(data.decode("utf-8", "replace"), name)


READERS: dict[str, Reader] = {
    "telemetry": _of_file(read_telemetry),
    "trace": _of_file(read_trace),
    "pasted text": _of_text(lambda text, name: read_text(text, source="fuzz", name=name)),
    "plan file": _of_text(lambda text, _: plan_of(read_yaml_text(text, name="fuzz"))),
    "table": _of_text(lambda text, _: csv_rows(text, source="fuzz")),
    "scenario": _of_text(
        lambda text, _: scenario_of(read_yaml_text(text, name="fuzz"), folder=None)
    ),
    "words": _of_text(lambda text, _: described_scenario(text[: MAX_TEXT + 1], {}, WORDS)),
    "model": _of_file(lambda path: find_model(str(path)), ".json"),
    "model name": _of_text(lambda text, _: find_model(text[:100].replace("/", "-").strip(".~"))),
    "cluster": _of_file(read_cluster, ".yaml"),
    "fleet": _of_file(read_fleet, ".yaml"),
    "jobs": _of_file(read_jobs),
    "step table": _of_file(read_step_table, ".csv"),
    "runs": lambda data, _, name: read_runs(data, name),
}
# What a reader is mostly given: names of files that are of its kind.
OWN = {
    "words": ("words",),
    "model name": ("words",),
    "model": ("config.json",),
    "scenario": ("scenario", ".yaml"),
    "plan file": (".yaml",),
    "cluster": ("teams.yaml", "night.yaml"),
    "fleet": ("fleet",),
    "jobs": ("teams.csv", "night.csv"),
    "runs": ("runs",),
}
OWN_FRAC = 0.7


def seeds() -> list[tuple[str, bytes]]:
    """Sound and spoiled files to begin with: made anew, not kept."""
    found = [(name, make()[:20_000]) for name, make in FILES.items()]
    questions = ROOT / "examples" / "questions.yaml"
    files = sorted((ROOT / "examples").rglob("*"))
    shipped = [p for p in files if p.suffix in (".yaml", ".csv", ".json", ".jsonl")]
    found += [(path.name, path.read_bytes()[:20_000]) for path in shipped if path != questions]
    for each in yaml.safe_load(questions.read_text(encoding="utf-8"))["questions"]:
        found.append(("words", each["question"].encode()))
        if "scenario" in each:
            found.append(("scenario.yaml", yaml.safe_dump(each["scenario"]).encode()))
    return found


def _reader(number: int) -> str:
    return list(READERS)[number % len(READERS)]


def drawn(number: int, seed: int, corpus: list[tuple[str, bytes]]) -> tuple[str, bytes]:
    """The input of this number."""
    draw = random.Random(f"{seed} {number}")
    own = OWN.get(_reader(number), ())
    fitting = [pair for pair in corpus if any(word in pair[0] for word in own)]
    name, data = draw.choice(fitting if fitting and draw.random() < OWN_FRAC else corpus)
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
    corpus, n_failed = seeds(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + n):
            reader = _reader(number)
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

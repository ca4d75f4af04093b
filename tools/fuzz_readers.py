"""Drawn and damaged inputs for every reader: each is read or refused, soon, and nothing else.

    python tools/fuzz_readers.py --minutes 60 [--only READER …] [--progress fuzz.json] [--keep]
    python tools/fuzz_readers.py --atheris READER [libFuzzer options]

Readers take turns of half a CPU-second, in this process. An input is drawn from the seed, the
reader and its number; one that is refused in a new way, or read where others were refused,
joins the inputs that later ones are made of (behaviour guides, not line coverage; `--atheris`
is guided by coverage, where that package is installed). The progress file has the number reached
for each reader, and the next run goes on there. A failure prints its reader, number and error, and
leaves the input beside the progress file. `--keep` writes what joined to tests/hardening/corpus.
"""

import argparse
import json
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

if "--atheris" in sys.argv:  # lines are counted in what is loaded from here on
    import atheris

    LOADING: AbstractContextManager[object] = atheris.instrument_imports(include=["gpuplan"])
else:
    LOADING = nullcontext()
with LOADING:
    from gpuplan.errors import PlannerError
    from hardening.readers import OWN, READERS, Seeds, kept, seeds

SLOW_S, HUNG_S = 2.0, 20  # CPU time of one input
GROWN_MB = 400  # of the peak, in one turn
TURN_S = 0.5
OWN_FRAC = 0.8
MAX_INPUT, MAX_JOINED, MAX_KEPT = 4000, 400, 24  # bytes; inputs of a reader; of those in the tree
PIECES = [
    *("\0", "\x1b[31m", "9" * 5000, "9" * 400, "1e300", "nan", "inf", "-1", "0", "-0.0", '"', "'"),
    *("{", "[" * 200, "\r", ",", "é", "null", "true", ":", "- ", "&a ", "*a", "<<: *a", "\n", "\t"),
    *(
        "1e-320",
        "2**63",
        "9223372036854775808",
        "\ud7ff",
        "﷽",
        "\u202e",
        "..",
        "/",
        "\\",
        "%",
        "=",
        "|",
    ),
]
CODED = [piece.encode() for piece in PIECES]
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|[\d.]+|nearest: .*|did you mean .*")


class HungError(BaseException):
    """An input that does not end."""


class Failure(NamedTuple):
    """An input that was neither read nor refused."""

    reader: str
    number: int
    what: str
    data: bytes


class Fuzzer:
    """One reader: its inputs so far, and what it did with them."""

    def __init__(self, reader: str, corpus: Seeds, seed: int, first: int, folder: Path) -> None:
        self.reader, self.seed, self.number, self.folder = reader, seed, first, folder
        self.n_read, self.cpu_s = 0, 0.0
        own = OWN.get(reader, ())
        self.corpus = corpus
        self.own = [pair for pair in corpus if any(word in pair[0] for word in own)] or corpus
        self.joined: Seeds = [(name, data) for kind, name, data in kept() if kind == reader]
        self.known = {self.outcome(*pair)[0] for pair in self.joined}

    def drawn(self) -> tuple[str, bytes]:
        """The input of the present number."""
        draw = random.Random(f"{self.seed} {self.reader} {self.number}")
        pool = self.own if draw.random() < OWN_FRAC else self.corpus
        if self.joined and draw.random() < 0.5:
            pool = self.joined
        name, data = draw.choice(pool)
        hurt = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 3, 8))):
            _hurt(hurt, draw, self.own)
        return name, bytes(hurt[:MAX_INPUT])

    def outcome(self, name: str, data: bytes) -> tuple[str, bool]:
        """How the input was answered, without its details; whether it is a failure."""
        try:
            found = READERS[self.reader](data, self.folder, name)
        except PlannerError as error:
            text = str(error)
            if "\x1b" in text:
                return "an escape sequence in an error", True
            return _DETAIL.sub("_", text)[:200], False
        except HungError:
            return f"not done after {HUNG_S} s", True
        except Exception as error:  # noqa: BLE001  (whatever it is, it is what we look for)
            return f"{type(error).__name__}: {error}"[:300], True
        self.n_read += 1
        return f"read as {type(found).__name__}", False

    def turn(self, until_s: float, most: int = 10**9) -> Iterator[Failure]:
        """Inputs until the process has had this much CPU time, or so many."""
        signal.setitimer(signal.ITIMER_VIRTUAL, HUNG_S)
        begun_s = before_s = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first = self.number
        while before_s < until_s and self.number < first + most:
            name, data = self.drawn()
            what, is_failure = self.outcome(name, data)
            now_s = time.process_time()
            if not is_failure and now_s - before_s > SLOW_S:
                what, is_failure = f"took {now_s - before_s:.1f} s", True
            if is_failure:
                yield Failure(self.reader, self.number, what, data)
            elif what not in self.known and len(self.joined) < MAX_JOINED:
                self.known.add(what)
                self.joined.append((name, data))
            self.number += 1
            before_s = now_s
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.cpu_s += before_s - begun_s
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
        if grown_mb > GROWN_MB:
            what = f"{grown_mb:.0f} MB more in inputs {first} to {self.number}"
            yield Failure(self.reader, self.number, what, b"")


def _hurt(data: bytearray, draw: random.Random, others: Seeds) -> None:
    """One change in place."""
    at, kind = draw.randrange(len(data) + 1), draw.randrange(7)
    if kind == 0:
        data[at:at] = draw.choice(CODED)
    elif kind == 1:
        del data[at : at + draw.randint(1, 60)]
    elif kind == 2 and data:
        data[at % len(data)] = draw.randrange(256)
    elif kind == 3:
        other = draw.choice(others)[1]
        begin = draw.randrange(len(other) + 1)
        data[at : at + draw.randint(0, 50)] = other[begin : begin + draw.randint(0, 300)]
    elif kind == 4:  # the same again
        data[at:at] = data[at : at + draw.randint(1, 80)] * draw.choice((1, 1, 2, 20))
    else:  # another value for one that is there
        end = at
        while end < len(data) and data[end] not in b" ,:\n\t\"'{}[]=&":
            end += 1
        data[at:end] = draw.choice(CODED)


def _on_time(*_: object) -> None:
    raise HungError


def run(readers: list[Fuzzer], cpu_s: float) -> Iterator[Failure]:
    """Turns of all readers for so much CPU time."""
    signal.signal(signal.SIGVTALRM, _on_time)
    end_s = time.process_time() + cpu_s
    while time.process_time() < end_s:
        for each in readers:
            yield from each.turn(time.process_time() + TURN_S)
        yield Failure("", 0, "", b"")  # a round is done


def under_atheris(reader: str, options: list[str]) -> None:
    """Inputs guided by the lines that they reach; ends at the first failure."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        fuzzer = Fuzzer(reader, [], 0, 0, Path(folder))

        def one(data: bytes) -> None:
            what, is_failure = fuzzer.outcome(next(iter(OWN.get(reader, [""]))), data)
            if is_failure:
                raise RuntimeError(what)

        atheris.Setup([sys.argv[0], *options], one)
        atheris.Fuzz()


def write_corpus(fuzzers: list[Fuzzer]) -> None:
    """A short input for each kind of answer, a line each."""
    folder = ROOT / "tests" / "hardening" / "corpus"
    folder.mkdir(exist_ok=True)
    for each in fuzzers:
        short = sorted(each.joined, key=lambda pair: len(pair[1]))[:MAX_KEPT]
        lines = sorted(f"{name}\t{_shown(data)}\n" for name, data in short if len(data) < 800)
        path = folder / f"{each.reader.replace(' ', '-')}.txt"
        path.write_text("".join(lines), encoding="utf-8")


def _shown(data: bytes) -> str:
    return data.decode("latin-1").encode("unicode_escape").decode("ascii")


def table(done: dict[str, dict[str, float]]) -> str:
    """A line for each reader: inputs and how many a CPU-second."""
    lines = [
        f"{name:14s} {each['n']:12,.0f} inputs {each['n'] / max(each['cpu_s'], 1e-9):8,.0f} a CPU-s"
        for name, each in done.items()
    ]
    return "\n".join([*lines, f"{'all':14s} {sum(e['n'] for e in done.values()):12,.0f} inputs"])


def write_progress(path: Path, done: dict[str, dict[str, float]], fuzzers: list[Fuzzer]) -> None:
    """The number that each reader has reached, and the CPU time that it took."""
    for each in fuzzers:
        done[each.reader] = {"n": each.number, "cpu_s": round(each.cpu_s, 2)}
    path.write_text(json.dumps(done, indent=1))


def search(asked: argparse.Namespace, folder: Path) -> int:
    """All readers for the time asked; how many kinds of failure there were."""
    done = json.loads(asked.progress.read_text()) if asked.progress.exists() else {}
    told: set[tuple[str, str]] = set()
    corpus, fuzzers = seeds(), []
    for name in asked.only or READERS:
        before = done.get(name, {"n": 0, "cpu_s": 0.0})
        fuzzers.append(Fuzzer(name, corpus, asked.seed, int(before["n"]), folder))
        fuzzers[-1].cpu_s = before["cpu_s"]
    for failure in run(fuzzers, 60 * asked.minutes):
        kind = failure.reader, _DETAIL.sub("_", failure.what)
        if not failure.reader:  # a round is done
            write_progress(asked.progress, done, fuzzers)
        elif kind not in told:
            told.add(kind)
            print(f"{failure.reader} {failure.number}: {failure.what}", flush=True)
            name = f"fuzz-{failure.reader.replace(' ', '-')}-{failure.number}.input"
            asked.progress.with_name(name).write_bytes(failure.data)
    if asked.keep:
        write_corpus(fuzzers)
    print(table(done) + f"; {len(told)} kinds of failure")
    return len(told)


def main() -> int:
    """Exit code 1 where an input was neither read nor refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="CPU time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=READERS)
    parser.add_argument("--progress", type=Path, default=Path("fuzz.json"))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--atheris", choices=READERS)
    asked, rest = parser.parse_known_args()
    if asked.atheris:
        under_atheris(asked.atheris, rest)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as temp:
        return 1 if search(asked, Path(temp)) else 0


if __name__ == "__main__":
    sys.exit(main())

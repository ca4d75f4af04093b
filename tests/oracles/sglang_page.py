"""A table of the simulator against SGLang's own scheduler, for the page of validation."""

from typing import Any, NamedTuple

import numpy as np

from oracles.asking import fresh_rows
from oracles.sglang_runs import MEASURED, NEW, OLD, Case, differing, ours, recorded

HEAD = """\
## SGLang's own scheduler

Streams of 40 to 220 requests through the scheduler of SGLang itself, on a clock instead of a device
(`tests/oracles/sglang`), and through ours: requests whose first token and end are equal to the
nanosecond, with retractions, steps and cached tokens of each run. Sync and overlap together.
"""
FRESH = """\
Fresh random streams (`python tools/check_sglang.py`), of the same kinds of load or with every
setting drawn by itself (`tests/oracles/sglang_mixes.py`: pages of 1 to 64 tokens, one to 512
sequences, chunks of 64 to 8,192 tokens or none, FCFS and LPM, mixed chunks, sync and overlap, three
ways to end): the counts are the tool's own.

| SGLang | streams | differ | requests |
|---|---:|---:|---:|
"""
OLDER = """
A pass over who waits keeps their prefixes fresh, every 32nd of them; passes in which a prompt is
cut and nobody waits are not counted, as two streams of 0.5.23 showed. What 0.5.21 does otherwise
is LPM in a burst, where some prefixes are found in another order.

Where decodes ride along with prompts, text is evicted twice: for as many tokens as the prompts may
take, then, when they have their pages, for a page of each decode. Whether decodes have their pages
is asked by evicting for them, even in vain.
"""


class Count(NamedTuple):
    """Equal requests of all, runs with equal counts of all, and retractions."""

    equal: int = 0
    n: int = 0
    equal_runs: int = 0
    n_runs: int = 0
    n_retracted: int = 0


def sglang_section() -> list[str]:
    """The section of the page, a row for every kind of load."""
    found = recorded()
    kinds = list(dict.fromkeys(_kind(name) for name in found["cases"]))
    lines = [
        f"| load | {NEW}: requests equal | runs | retractions | {OLD}: requests equal | runs |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind in kinds:
        names = [name for name in found["cases"] if _kind(name) == kind]
        new, old = (_counted(found, names, version) for version in (NEW, OLD))
        cells = f"{new.equal} of {new.n} | {new.equal_runs} of {new.n_runs} | {new.n_retracted}"
        older = f"{old.equal} of {old.n} | {old.equal_runs} of {old.n_runs}" if old.n else "– | –"
        lines.append(f"| {kind} | {cells} | {older} |")
    return [HEAD, *lines, "", FRESH + fresh_rows(MEASURED), OLDER]


def _kind(name: str) -> str:
    return name.split("|", 1)[1].rsplit("/", 1)[0]


def _counted(found: dict[str, Any], names: list[str], version: str) -> Count:
    total = Count()
    for name in names:
        if name in found[version]:
            one = _compared(found["cases"][name], found[version][name], version)
            total = Count(*(a + b for a, b in zip(total, one, strict=True)))
    return total


def _compared(case: Case, true: dict[str, Any], version: str) -> Count:
    mine = ours(case, version=version)
    is_equal = np.isclose(mine["first_s"], true["first_s"], rtol=1e-9, atol=1e-7)
    is_equal &= np.isclose(mine["end_s"], true["end_s"], rtol=1e-9, atol=1e-7)
    is_whole = int(not differing(mine, true))
    return Count(int(is_equal.sum()), len(is_equal), is_whole, 1, sum(true["n_preemptions"]))

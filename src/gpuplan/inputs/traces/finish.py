"""Columns become a trace: in order, from a near zero, with a note on all that was odd."""

from itertools import chain
from pathlib import Path

import numpy as np

from gpuplan.domain.columns import Floats, Ints, ints
from gpuplan.domain.traffic.stream import Grouping, PrefixBlocks, requests_of
from gpuplan.domain.traffic.trace import TraceRead
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.traces.clock import UNIT_NAMES, Clock
from gpuplan.inputs.traces.prefixes import permuted, shared_prefixes
from gpuplan.inputs.traces.rows import Findings, OpenTrace, Part
from gpuplan.units import DAY

MANY_TIES = 0.05
MAX_RESTARTS = 100
LEAST_RECORDING = 20  # requests: fewer may just be out of order
NEAR_START_FRAC = 0.02
RESTART = "the clock starts again at line {line}: recordings are laid end to end, not together"
NO_ROWS = Part._make(np.array([], dtype=np.int64) for _ in Part._fields)


def finish(path: Path, opened: OpenTrace, parts: list[Part]) -> TraceRead:
    """The trace; InputError where nothing, or less than half, could be read."""
    findings, clock = opened.converter.findings, opened.converter.clock
    part = Part._make(map(np.concatenate, zip(*parts, strict=True))) if parts else NO_ROWS
    _refuse_unfit(path, part, findings)
    part, restarts = _on_one_clock(
        part, is_dated=clock is not None and clock.is_dated(part.arrive_s)
    )
    order = np.argsort(part.arrive_s, kind="stable")
    n_late = int((np.diff(part.arrive_s) < 0).sum())
    blocks = _blocks(opened, order)
    part = Part._make(column[order] for column in part)
    origin = origin_s(part.arrive_s)
    has_arrivals = clock is not None and not clock.is_absent
    group, shared = shared_prefixes(blocks, part.input_tokens)
    grouping = Grouping(
        session=part.session,
        prefix_group=group,
        prefix_tokens=shared,
        priority=part.priority,
        max_tokens=part.max_tokens,
    )
    arrive = part.arrive_s - origin
    notes = chain(
        opened.notes,
        _about_time(clock if has_arrivals else None, origin, n_late, arrive=arrive),
        (RESTART.format(line=line) for line in restarts),
        _about_lengths(part),
        (f"{n:,} {what}" for what, n in (findings.skipped + findings.odd).items()),
    )
    return TraceRead(
        requests=requests_of(arrive, part.input_tokens, part.output_tokens, grouping=grouping),
        format=opened.format,
        remarks=tuple(notes),
        n_bad=findings.n_bad,
        bad=tuple(findings.bad),
        line=ints(part.line),
        has_arrivals=has_arrivals,
        start_at=clock.start_at(origin) if clock is not None and has_arrivals else "",
        blocks=blocks,
    )


def _on_one_clock(part: Part, *, is_dated: bool) -> tuple[Part, list[int]]:
    """Recordings whose clocks start again, end to end; and the line where each begins.

    Laid over each other, as sorting would, they would make a load that nobody has seen.
    """
    arrive = part.arrive_s
    back = np.flatnonzero(np.diff(arrive) < 0) + 1
    edges = np.concatenate([[0], back, [len(arrive)]])
    if is_dated or not 0 < len(back) <= MAX_RESTARTS or np.diff(edges).min() < LEAST_RECORDING:
        return part, []
    low, high = arrive[edges[:-1]], arrive[edges[1:] - 1]
    if np.any(low[1:] > low[0] + NEAR_START_FRAC * (high[:-1] - low[0])):
        return part, []
    shifted = arrive.copy()
    for i in range(1, len(edges) - 1):
        before = shifted[edges[i - 1] : edges[i]]
        gap = (before[-1] - before[0]) / (len(before) - 1)
        shifted[edges[i] : edges[i + 1]] += before[-1] + gap - arrive[edges[i]]
    return part._replace(arrive_s=shifted), [int(part.line[i]) for i in back]


def _refuse_unfit(path: Path, part: Part, findings: Findings) -> None:
    if len(findings.runs) > 1:
        runs = ", ".join(run[:40] for run in sorted(findings.runs)[:30])
        what = f"holds {len(findings.runs)} runs, each with its own clock"
        problem = Problem(str(path), what, f"choose one with --where run=NAME: {runs}")
        raise InputError("trace", [problem])
    n_good = len(part.line)
    if n_good and n_good >= findings.n_bad:
        return
    what = f"{findings.n_bad:,} lines are bad, {n_good:,} are good"
    if not findings.n_bad:
        n = sum(findings.skipped.values())
        what = f"holds no requests ({n:,} other lines)" if n else "holds no requests"
    fix = "give a trace with at least one request, or map its columns"
    raise InputError("trace", [Problem(str(path), what, fix), *findings.bad])


def origin_s(arrive_s: Floats) -> float:
    """What time 0 is: the file's own zero where the first request is within a day of it."""
    first = float(arrive_s[0])
    return 0.0 if 0 <= first < DAY else first


def _blocks(opened: OpenTrace, order: Ints) -> PrefixBlocks | None:
    if not opened.n_block_tokens:
        return None
    first = np.concatenate([[0], np.cumsum(opened.converter.n_blocks)])
    block = np.array(opened.converter.block, dtype=np.int64)
    return permuted(first, block, order, n_block_tokens=opened.n_block_tokens)


def _about_time(clock: Clock | None, origin: float, n_late: int, *, arrive: Floats) -> list[str]:
    if clock is None:
        return ["there are no times: all requests arrive at 0, use the lengths alone"]
    notes = []
    if clock.is_stamp:
        notes += _about_zones(sorted(clock.zones))
    elif clock.is_guessed and clock.unit is not None:
        notes.append(f"times are taken for {UNIT_NAMES[clock.unit]}; name the unit if they are not")
    elif clock.unit is not None:
        notes.append(f"times are in {UNIT_NAMES[clock.unit]}")
    if n_late:
        notes.append(f"rows out of order: {n_late:,}; all are sorted by time")
    if origin:
        notes.append(f"time 0 is the first request, at {origin:.6f} s of the file's clock")
    tie_frac = float((np.diff(arrive) == 0).mean()) if len(arrive) > 1 else 0.0
    if tie_frac > MANY_TIES:
        notes.append(
            f"{tie_frac:.0%} of requests share their time with the one before: it is coarse"
        )
    return notes


def _about_zones(zones: list[str]) -> list[str]:
    if zones == [""]:
        return ["times bear no zone, and are taken for UTC"]
    if "" in zones:
        return ["some times bear no zone, and are taken for UTC"]
    return [f"times bear the zone {', '.join(zones)}, and are turned to UTC"]


def _about_lengths(part: Part) -> list[str]:
    notes = []
    for name, column in (("prompts", part.input_tokens), ("outputs", part.output_tokens)):
        n_zero = int((column == 0).sum())
        if n_zero:
            notes.append(f"{n_zero:,} {name} have 0 tokens, and are retained")
    return notes

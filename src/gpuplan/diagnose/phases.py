"""What a node does: states that are seen, phases that follow from their order.

Idle, loading and busy are facts of an instant. Warm-up looks like steady work to every counter, so
phases are inferred from the order: that is a convention of recorders, and it is marked as such.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.diagnosis import PhaseSpan
from gpuplan.domain.observation import Series, Telemetry

STEP_S = 1.0
BUSY_SM, BUSY_UTIL = 0.10, 0.20
WARMUP_S = 30.0  # Assumption: recorders let half a minute pass before they call it steady
LOADED = 0.98  # of the memory held at most
GROWTH = 0.01  # of the memory held at most, within a second, is loading


def node_phases(telemetry: Telemetry) -> tuple[PhaseSpan, ...]:
    """States and phases of each node whose devices report their use."""
    nodes: dict[str, list[int]] = {}
    for series in telemetry.series:
        if series.metric in ("sm_active_frac", "gpu_util_frac"):
            node = telemetry.subjects[series.subject].node
            rows = nodes.setdefault(node, [])
            if series.subject not in rows:
                rows.append(series.subject)
    return tuple(span for node, rows in nodes.items() for span in _node(telemetry, node, rows))


def _node(telemetry: Telemetry, node: str, rows: Sequence[int]) -> list[PhaseSpan]:
    use = [one for row in rows if (one := telemetry.one("sm_active_frac", row)) is not None]
    least = BUSY_SM
    if not use:
        use = [one for row in rows if (one := telemetry.one("gpu_util_frac", row)) is not None]
        least = BUSY_UTIL
    at_s = _grid(use)
    if len(at_s) < 3:
        return []
    is_busy = _mean(use, at_s) > least
    memory = [one for row in rows if (one := telemetry.one("memory_used_bytes", row)) is not None]
    states = _states(is_busy, _mean(memory, at_s) if memory else None)
    phases = _phases(
        at_s, is_busy, _mean(memory, at_s) if memory else None,
        second_s=min(float(one.at_s[1]) for one in use if len(one.at_s) > 1),
    )  # fmt: skip
    return _spans(node, at_s, states, phases)


def _grid(series: Sequence[Series]) -> Floats:
    begin = min(float(one.at_s[0]) for one in series)
    end = max(float(one.at_s[-1]) for one in series)
    step_s = max(
        STEP_S, float(np.median(np.diff(series[0].at_s))) if len(series[0].at_s) > 1 else STEP_S
    )
    return np.arange(begin, end + step_s / 2.0, step_s)


def _mean(series: Sequence[Series], at_s: Floats) -> Floats:
    """Mean over devices of the mean within each step of the grid."""
    step_s = float(at_s[1] - at_s[0])
    total, count = np.zeros(len(at_s)), np.zeros(len(at_s))
    for one in series:
        is_given = one.is_given
        place = np.clip(
            ((one.at_s[is_given] - at_s[0]) / step_s).astype(np.int64), 0, len(at_s) - 1
        )
        total += np.bincount(place, weights=one.value[is_given], minlength=len(at_s))
        count += np.bincount(place, minlength=len(at_s))
    known = np.flatnonzero(count)
    return np.interp(np.arange(len(at_s)), known, total[known] / count[known])


def _states(
    is_busy: np.ndarray[tuple[int], np.dtype[np.bool_]], memory: Floats | None
) -> list[str]:
    states = np.where(is_busy, "busy", "idle").astype("<U8")
    if memory is not None:
        grows = np.diff(memory, prepend=memory[0]) > GROWTH * memory.max()
        states[~is_busy & grows] = "loading"
    return [str(state) for state in states]


def _phases(
    at_s: Floats, is_busy: np.ndarray[tuple[int], np.dtype[np.bool_]], memory: Floats | None, *,
    second_s: float,
) -> list[str]:  # fmt: skip
    """Init, loading, warm-up, steady, cool-down, by what came before and what comes after.

    The first sample is taken before the program starts: it stands until the second.
    """
    busy = np.flatnonzero(is_busy)
    first = int(busy[0]) if len(busy) else _loaded(memory)
    last = int(busy[-1]) if len(busy) else len(at_s) - 1
    if first is None:
        return ["idle"] * len(at_s)
    # Where work follows, recorders count the way to it as warm-up; where only a model is loaded
    # and nothing is asked of it, as loading.
    before = "warmup" if len(busy) else "loading"
    phases = ["init"]
    for k, at in enumerate(at_s[1:], start=1):
        if at < second_s:
            phases.append("init")
        elif k > last:
            phases.append("cooldown")
        elif k < first:
            phases.append(before)
        elif at < at_s[first] + WARMUP_S:
            phases.append("warmup")
        else:
            phases.append("steady")
    return phases


def _loaded(memory: Floats | None) -> int | None:
    """When a model that is never used lies in memory."""
    if memory is None or memory.max() < 1e9:
        return None
    return int(np.argmax(memory >= LOADED * memory.max()))


def _spans(
    node: str, at_s: Floats, states: Sequence[str], phases: Sequence[str]
) -> list[PhaseSpan]:
    spans, k = [], 0
    for (state, phase), group in groupby(zip(states, phases, strict=True)):
        n = len(list(group))
        end = at_s[min(k + n, len(at_s) - 1)]
        spans.append(
            PhaseSpan(node=node, begin_s=float(at_s[k]), end_s=float(end), state=state, phase=phase)
        )
        k += n
    return spans

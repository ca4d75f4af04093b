"""What a node does: states that are seen, phases that follow from their order.

Idle, loading and busy are facts of an instant. Warm-up looks like steady work to every counter, so
phases are inferred from the order: that is a convention of recorders, and it is marked as such.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.telemetry.diagnosis import PhaseSpan
from gpuplan.domain.telemetry.observation import Series, Telemetry

STEP_S = 1.0
IN_PLACE = 0.98  # of the memory held at most: a model that is never used is loaded
LOADED = 0.90  # of the memory held at most: what runs later was in place before
GROWTH = 0.01  # of the memory held at most, within a second, is loading
N_FINE = 2000  # steps of a short run
N_STEPS_MAX = 500_000  # of one node: a long recording is looked at more coarsely
INIT_S = 5.0  # a program takes no longer to start
LASTING_S = 10.0  # work that fills half of so long a stretch has begun; a test kernel has not
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]


class PhaseRule(NamedTuple):
    """What counts as busy, and how long recorders call work a warm-up."""

    busy_sm: float = 0.10
    busy_util: float = 0.20
    busy_fabric: float = 0.20  # of the traffic's 95th percentile
    busy_power: float = 0.30  # of the way from the lowest power to the 95th percentile
    warmup_s: float = 30.0  # Assumption: half a minute passes before they call it steady


RULE = PhaseRule()


class _Use(NamedTuple):
    """What shows work, for one node."""

    series: list[Series]
    is_busy: Bools
    at_s: Floats


def node_phases(telemetry: Telemetry, rule: PhaseRule = RULE) -> tuple[PhaseSpan, ...]:
    """States and phases of each node whose devices, network or power show its work."""
    nodes: dict[str, list[int]] = {}
    for series in telemetry.series:
        if series.metric in _SHOWS:
            node = telemetry.subjects[series.subject].node
            rows = nodes.setdefault(node, [])
            if series.subject not in rows:
                rows.append(series.subject)
    return tuple(
        span for node, rows in nodes.items() for span in _node(telemetry, node, rows, rule=rule)
    )


_SHOWS = ("sm_active_frac", "gpu_util_frac", "fabric_tx_bytes_per_s", "node_power_w")


def _use(telemetry: Telemetry, rows: Sequence[int], rule: PhaseRule) -> _Use | None:
    """The best witness there is: processors, utilization, traffic between nodes, power."""
    for metric in _SHOWS:
        found = [one for row in rows if (one := telemetry.one(metric, row)) is not None]
        if not found or not any(one.is_given.any() for one in found):
            continue
        at_s = _grid(found)
        if len(at_s) < 3:
            return None
        level = _mean(found, at_s)
        return _Use(found, _is_busy(metric, level, rule), at_s)
    return None


def _is_busy(metric: str, level: Floats, rule: PhaseRule) -> Bools:
    if metric == "sm_active_frac":
        return level > rule.busy_sm
    if metric == "gpu_util_frac":
        return level > rule.busy_util
    high = float(np.quantile(level, 0.95))
    if metric == "fabric_tx_bytes_per_s":
        return level > max(rule.busy_fabric * high, 1e6)
    low = float(level.min())
    # A node that always draws the same shows nothing.
    return (level > low + rule.busy_power * (high - low)) & (high > 1.2 * low)


def _node(
    telemetry: Telemetry, node: str, rows: Sequence[int], *, rule: PhaseRule
) -> list[PhaseSpan]:
    use = _use(telemetry, rows, rule)
    if use is None:
        return []
    memory = [
        one
        for row in rows
        if (one := telemetry.one("memory_used_bytes", row)) is not None and one.is_given.any()
    ]
    retained = _mean(memory, use.at_s) if memory else None
    states = _states(use.is_busy, retained)
    phases = _phases(
        use.at_s,
        use.is_busy,
        retained,
        warmup_s=rule.warmup_s,
        second_s=min(float(one.at_s[1]) for one in use.series if len(one.at_s) > 1),
    )
    return _spans(node, use.at_s, states, phases)


def _grid(series: Sequence[Series]) -> Floats:
    """Steps as fine as the samples; finer where a run is short, so that warm-ups can be told."""
    begin = min(float(one.at_s[0]) for one in series)
    end = max(float(one.at_s[-1]) for one in series)
    usual_s = float(np.median(np.diff(series[0].at_s))) if len(series[0].at_s) > 1 else STEP_S
    step_s = max(STEP_S, min(usual_s, (end - begin) / N_FINE), (end - begin) / N_STEPS_MAX)
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


def _states(is_busy: Bools, memory: Floats | None) -> list[str]:
    states = np.where(is_busy, "busy", "idle").astype("<U8")
    if memory is not None:
        grows = np.diff(memory, prepend=memory[0]) > GROWTH * memory.max()
        states[~is_busy & grows] = "loading"
    return [str(state) for state in states]


def _phases(
    at_s: Floats, is_busy: Bools, memory: Floats | None, *, warmup_s: float, second_s: float
) -> list[str]:
    """Init, loading, warm-up, steady, cool-down, by what came before and what comes after.

    The first sample is taken before the program starts: it stands until the second.
    """
    begun = _begun(at_s, is_busy)
    busy = np.flatnonzero(is_busy)
    first = _loaded(memory) if begun is None else begun
    if first is None:
        return ["idle"] * len(at_s)
    last = int(busy[-1]) if begun is not None else len(at_s) - 1
    # Training takes its memory as it steps: the way there counts as warm-up. Where everything lies
    # in memory before the first work, as in serving, that was loading.
    is_in_place = memory is not None and memory[max(first - 1, 0)] >= LOADED * memory.max()
    before = "loading" if begun is None or is_in_place else "warmup"
    init_until_s = min(second_s, at_s[0] + INIT_S)
    phases = []
    for k, at in enumerate(at_s):
        if at < init_until_s:
            phases.append("init")
        elif k > last:
            phases.append("cooldown")
        elif k < first:
            phases.append(before)
        elif at < at_s[first] + warmup_s:
            phases.append("warmup")
        else:
            phases.append("steady")
    return phases


def _begun(at_s: Floats, is_busy: Bools) -> int | None:
    """The first busy step after which work goes on."""
    width = max(1, round(LASTING_S / float(at_s[1] - at_s[0])))
    for k in np.flatnonzero(is_busy):
        if is_busy[k : k + width].mean() >= 0.5:
            return int(k)
    return None


def _loaded(memory: Floats | None) -> int | None:
    """When a model that is never used lies in memory."""
    if memory is None or memory.max() < 1e9:
        return None
    return int(np.argmax(memory >= IN_PLACE * memory.max()))


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

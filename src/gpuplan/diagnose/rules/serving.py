"""Causes that an engine's own counters show: queue, cache, slots, starts.

Thresholds come from recorded runs: time to the first token is steady below 90 % of the cache,
doubles to 95 %, and is lost above 98 % [InferenceX-multiturn]; a queue of more than one for half a
minute means that requests wait.
"""

from collections.abc import Sequence

import numpy as np

from gpuplan.diagnose.features import EngineView, window_means
from gpuplan.diagnose.finding import Finding, evidence_of, percent
from gpuplan.domain.telemetry.diagnosis import Evidence
from gpuplan.domain.telemetry.digest import quantile, summed
from gpuplan.domain.telemetry.observation import Series, Telemetry

WINDOW_S = 30.0
WAITING = 1.0
CACHE_FULL = 0.90
CEILING = 0.97  # of the largest batch seen counts as "at its ceiling"
ERRORS = 0.01


def serving_findings(telemetry: Telemetry, engines: Sequence[EngineView]) -> list[Finding]:
    """Everything that the engines' counters say."""
    found = [one for engine in engines for one in _engine_findings(engine)]
    for group in _services(telemetry, engines):
        found += _imbalance(group)
    found += _interference(telemetry)
    found += _starts(telemetry)
    return found


def _engine_findings(engine: EngineView) -> list[Finding]:
    queue = _queue(engine)
    if queue:
        return queue
    errors = _errors(engine)
    return [*errors, *_low_demand(engine)]


def _queue(engine: EngineView) -> list[Finding]:
    """Which of the four reasons a queue has; none where nothing waits."""
    waiting = engine.series.get("requests_waiting_count")
    if waiting is None:
        return []
    _, depth = window_means(waiting, WINDOW_S)
    if len(depth) == 0 or not (depth > WAITING).any():
        return []
    share = float((depth > WAITING).mean())
    cache = engine.stat("kv_cache_frac")
    preemptions = engine.mean("preemptions_per_s") or 0.0
    rows: tuple[Evidence, ...] = (
        evidence_of(
            "requests that wait", f"{depth.max():.0f} at most", f"{WAITING:.0f} for half a minute"
        ),
        evidence_of("time with a queue", percent(share), "0 %"),
    )
    if len(depth) >= 4 and (depth[1:] > WAITING).mean() < 0.05:
        return [Finding("start_burst", 0.8, rows, (engine.name,), share)]
    cache_at = _while_waiting(engine.series.get("kv_cache_frac"), waiting)
    if cache_at is not None and cache_at >= CACHE_FULL:
        return _full_cache(engine, rows, cache_at, preemptions=preemptions, share=share)
    if _at_ceiling(engine, waiting):
        ceiling = engine.stat("requests_running_count")
        at_most = f"{ceiling.peak:.0f}" if ceiling is not None else "?"
        rows += (
            evidence_of(
                "sequences in the batch", f"{at_most} whenever requests wait", "its ceiling"
            ),
            evidence_of(
                "cache in use", "unknown" if cache is None else percent(cache.peak), "below 90 %"
            ),
        )
        return [
            Finding("slot_limited", 0.85 if cache is not None else 0.6, rows, (engine.name,), share)
        ]
    return [_overload(engine, rows, waiting, share)]


def _full_cache(
    engine: EngineView,
    rows: tuple[Evidence, ...],
    cache_at: float,
    *,
    preemptions: float,
    share: float,
) -> list[Finding]:
    rows += (evidence_of("cache while requests wait", percent(cache_at), "below 90 %"),)
    if preemptions > 0:
        rows += (evidence_of("sequences thrown out", f"{preemptions * 60:.1f} a minute", "none"),)
    sure = 0.95 if preemptions > 0 else 0.8
    found = [Finding("kv_thrash", sure, rows, (engine.name,), share)]
    hits = engine.series.get("prefix_hit_frac")
    if hits is not None:
        _, hit = window_means(hits, WINDOW_S)
        if len(hit) >= 4 and hit.max() > 0.5 and np.median(hit[len(hit) // 2 :]) < 0.2:
            late = float(np.median(hit[len(hit) // 2 :]))
            row = evidence_of(
                "prefix hits", f"from {percent(float(hit.max()))} to {percent(late)}", "steady"
            )
            found.append(
                Finding("prefix_cache_lost", 0.85, (row, *rows[2:]), (engine.name,), share)
            )
    return found


def _overload(
    engine: EngineView, rows: tuple[Evidence, ...], waiting: Series, share: float
) -> Finding:
    at_s, depth = window_means(waiting, WINDOW_S)
    slope = float(np.polyfit(at_s - at_s[0], depth, 1)[0]) if len(depth) >= 3 else 0.0
    if slope > 0:
        rows += (evidence_of("growth of the queue", f"{slope * 60:.1f} requests a minute", "none"),)
    return Finding("overload", 0.85 if slope > 0 else 0.65, rows, (engine.name,), share)


def _while_waiting(series: Series | None, waiting: Series) -> float | None:
    """Mean of a series at the instants at which requests wait."""
    if series is None:
        return None
    place = np.clip(np.searchsorted(waiting.at_s, series.at_s, side="right") - 1, 0, None)
    retained = (waiting.value[place] > WAITING) & series.is_given
    return float(series.value[retained].mean()) if retained.any() else None


def _at_ceiling(engine: EngineView, waiting: Series) -> bool:
    """Whether the batch stands at its largest whenever requests wait: a limit, not a load."""
    running = engine.series.get("requests_running_count")
    if running is None or not running.is_given.any():
        return False
    given = engine.mean("max_sequences_count")
    peak = given if given else float(np.nanmax(running.value))
    place = np.clip(np.searchsorted(running.at_s, waiting.at_s, side="right") - 1, 0, None)
    retained = waiting.value > WAITING
    at_peak = running.value[place][retained] >= CEILING * peak
    return bool(retained.sum() >= 3 and at_peak.mean() >= 0.6)


def _errors(engine: EngineView) -> list[Finding]:
    failed, done = engine.mean("requests_failed_per_s"), engine.mean("requests_per_s")
    if not failed or failed / (failed + (done or 0.0)) < ERRORS:
        return []
    share = failed / (failed + (done or 0.0))
    row = evidence_of("requests that fail", percent(share), "below 1 %")
    return [Finding("request_errors", 0.9, (row,), (engine.name,), share)]


def _low_demand(engine: EngineView) -> list[Finding]:
    cache, running = engine.stat("kv_cache_frac"), engine.stat("requests_running_count")
    if cache is None or running is None or cache.high > 0.15 or running.high > 4.0:
        return []
    rows = (
        evidence_of("cache in use", f"{percent(cache.high)} in 95 % of samples", "above 15 %"),
        evidence_of("sequences in the batch", f"{running.high:.0f} in 95 % of samples", "above 4"),
    )
    return [Finding("low_demand", 0.7, rows, (engine.name,))]


def _services(telemetry: Telemetry, engines: Sequence[EngineView]) -> list[list[EngineView]]:
    """Engines that answer for one another: of the same service."""
    groups: dict[str, list[EngineView]] = {}
    for engine in engines:
        groups.setdefault(telemetry.subjects[engine.row].service, []).append(engine)
    return list(groups.values())


def _imbalance(engines: Sequence[EngineView]) -> list[Finding]:
    """Some wait while others have nothing to do; only among engines of one service."""
    loads = [
        (engine.name, running + (engine.mean("requests_waiting_count") or 0.0))
        for engine in engines
        if (running := engine.mean("requests_running_count")) is not None
    ]
    if len(loads) < 2:
        return []
    values = np.array([load for _, load in loads])
    middle = float(np.median(values))
    has_queue = any((engine.mean("requests_waiting_count") or 0.0) > WAITING for engine in engines)
    if not has_queue or values.max() < 2.0 * max(middle, 1.0) or values.min() > 0.5 * values.max():
        return []
    most = [name for name, load in loads if load >= 0.9 * values.max()]
    rows = (
        evidence_of(
            "requests at one replica",
            f"from {values.min():.0f} to {values.max():.0f}",
            "about equal",
        ),
    )
    return [Finding("replica_imbalance", 0.7, rows, tuple(most))]


def _interference(telemetry: Telemetry) -> list[Finding]:
    """Gaps between tokens with a long tail while nothing waits."""
    gaps = [one for one in telemetry.histograms if one.metric == "tpot_s"]
    if not gaps:
        return []
    upper, count = summed(gaps)
    middle, tail = quantile(upper, count, 0.5), quantile(upper, count, 0.99)
    waiting = [one.mean() for one in telemetry.of("requests_waiting_count") if one.is_given.any()]
    if middle is None or tail is None or middle <= 0 or tail < 5.0 * middle or count.sum() < 200:
        return []
    if waiting and max(waiting) > WAITING:
        return []
    rows = (
        evidence_of(
            "gap between tokens, p99",
            f"{tail * 1e3:.0f} ms",
            f"5 x the median of {middle * 1e3:.0f} ms",
        ),
        evidence_of("requests that wait", "none to speak of", "a queue would explain it"),
    )
    return [Finding("prefill_interference", 0.65, rows)]


def _starts(telemetry: Telemetry) -> list[Finding]:
    """Replicas that go up and down within the time that a start takes."""
    found = []
    for series in telemetry.of("replicas_count"):
        moves = np.diff(series.value[series.is_given])
        turns = int(((moves[:-1] != 0) & (np.sign(moves[1:]) == -np.sign(moves[:-1]))).sum())
        ups = float(moves[moves > 0].sum())
        span_h = (series.at_s[-1] - series.at_s[0]) / 3600.0 if len(series.at_s) > 1 else 0.0
        mean = series.mean() if series.is_given.any() else 0.0
        if span_h > 0 and mean > 0 and ups / span_h / mean > 1.0 and ups >= 4:
            rows = (
                evidence_of(
                    "starts",
                    f"{ups / span_h:.1f} an hour",
                    f"below {mean:.1f}, one for each replica",
                ),
                evidence_of("turns from up to down", f"{turns}", "few"),
            )
            found.append(Finding("cold_start_storm", 0.75, rows))
    return found

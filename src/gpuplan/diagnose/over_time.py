"""Utilization over time: minutes in bands, stretches with hysteresis, the tail of a full pool."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from gpuplan.diagnose.bands import erlang_c, safe_use
from gpuplan.domain.telemetry.diagnosis import BandEdges
from gpuplan.domain.telemetry.figures import BandsOverTime, Episode, MinuteUse, PoolTail
from gpuplan.domain.telemetry.observation import Series

MINUTE_S = 60.0
HYSTERESIS = 0.02  # a band is left only so far beyond its edge
LEAST_MINUTES = 3  # a shorter visit to another band is noise
CALM, FULLEST = 0.80, 0.999
BAND_WIDTH = 0.20  # of the usual 70 % to 90 %
MOST_MINUTES = 1440
ORDER = ("waste", "under-used", "good", "hot", "overload")


def over_time(
    series: Sequence[Series], edges: BandEdges, *, n_devices: int, mean_frac: float
) -> BandsOverTime:
    """Minutes, stretches, and what a pool of this size can bear."""
    minutes = minutes_of(series, edges)
    episodes = _episodes(minutes, edges)
    safe = safe_use(n_devices)
    raw = [one.band for one in minutes]
    return BandsOverTime(
        minutes=minutes[:MOST_MINUTES],
        episodes=episodes,
        n_crossings=sum(a != b for a, b in pairwise(raw)),
        suggested_low_frac=max(0.0, safe - BAND_WIDTH),
        suggested_high_frac=safe,
        tail=_tail(n_devices, _full_frac(minutes, episodes, mean_frac), edges),
    )


def pool_warnings(n_devices: int, edges: BandEdges, times: BandsOverTime) -> Iterator[str]:
    """Where the usual band does not suit a pool of this size, and what being full does to it."""
    safe, usual = times.suggested_high_frac, f"{edges.good_frac:.0%} to {edges.hot_frac:.0%}"
    if safe < edges.good_frac:
        yield (
            f"{n_devices} alone can bear {safe:.0%} before requests queue: "
            f"the band of {usual} is too high for so few"
        )
    elif safe > edges.hot_frac:
        yield (
            f"a pool of {n_devices} can bear {safe:.0%}: the band up to {edges.hot_frac:.0%} "
            "wastes some of it"
        )
    if times.tail is not None:
        tail = times.tail
        least = "more than " if tail.use_frac > FULLEST else ""
        yield (
            f"at {tail.use_frac:.0%} of {n_devices} GPU{'s' * (n_devices > 1)} work waits {least}"
            f"{tail.wait_growth_ratio:.1f} times as long as at {tail.calm_frac:.0%}"
        )
    begin_s = times.minutes[0].at_s if times.minutes else 0.0
    full = (
        [one for one in times.episodes if one.band == "overload"] if len(times.episodes) > 1 else []
    )
    if full:
        longest = max(full, key=lambda one: one.end_s - one.begin_s)
        minutes = [round((at_s - begin_s) / MINUTE_S) for at_s in (longest.begin_s, longest.end_s)]
        yield (
            f"overload {len(full)} time{'s' * (len(full) > 1)}, "
            f"longest from minute {minutes[0]:,} to {minutes[1]:,}"
        )


def minutes_of(series: Sequence[Series], edges: BandEdges) -> tuple[MinuteUse, ...]:
    """Mean over all series of each minute that has samples."""
    at_s = np.concatenate([one.at_s[one.is_given] for one in series])
    value = np.concatenate([one.value[one.is_given] for one in series])
    place = np.floor((at_s - at_s.min()) / MINUTE_S).astype(np.int64)
    retained, inverse = np.unique(place, return_inverse=True)
    means = np.bincount(inverse, weights=value) / np.bincount(inverse)
    begin = float(at_s.min())
    return tuple(
        MinuteUse(at_s=begin + float(k) * MINUTE_S, use_frac=float(m), band=edges.band(float(m)))
        for k, m in zip(retained, means, strict=True)
    )


def _episodes(minutes: Sequence[MinuteUse], edges: BandEdges) -> tuple[Episode, ...]:
    """Stretches of one band; visits shorter than the least number of minutes join what was."""
    retained = _retained(minutes, edges)
    runs: list[list[int]] = []  # first and last place of each band that is held
    for k in range(len(retained)):
        if runs and retained[k] == retained[runs[-1][0]]:
            runs[-1][1] = k
        else:
            runs.append([k, k])
    found: list[Episode] = []
    for first, last in runs:
        end_s = minutes[last].at_s + MINUTE_S
        is_short = last - first + 1 < LEAST_MINUTES
        if found and (is_short or found[-1].band == retained[first]):
            found[-1] = Episode(band=found[-1].band, begin_s=found[-1].begin_s, end_s=end_s)
        elif not is_short or len(retained) < LEAST_MINUTES:
            found.append(Episode(band=retained[first], begin_s=minutes[first].at_s, end_s=end_s))
    return tuple(found)


def _retained(minutes: Sequence[MinuteUse], edges: BandEdges) -> list[str]:
    """The band of each minute; one is left downwards only well below its edge."""
    retained: list[str] = []
    for one in minutes:
        now = one.band
        if retained and ORDER.index(now) < ORDER.index(retained[-1]):
            lifted = edges.band(min(one.use_frac + HYSTERESIS, 1.0))
            now = min(retained[-1], lifted, key=ORDER.index)
        retained.append(now)
    return retained


def _full_frac(
    minutes: Sequence[MinuteUse], episodes: Sequence[Episode], mean_frac: float
) -> float:
    """Mean utilization of the stretches that are hot or overloaded; else of all the time."""
    full = [one for one in episodes if one.band in ("hot", "overload")]
    retained = [
        minute.use_frac
        for minute in minutes
        if any(one.begin_s <= minute.at_s < one.end_s for one in full)
    ]
    return max(mean_frac, float(np.mean(retained))) if retained else mean_frac


def _tail(n_devices: int, mean_frac: float, edges: BandEdges) -> PoolTail | None:
    """Growth of the mean wait of an M/M/n queue [Erlang1917]; the tail grows with it."""
    if mean_frac <= max(edges.hot_frac, CALM):
        return None
    use = min(mean_frac, FULLEST)
    return PoolTail(
        n_devices=n_devices,
        calm_frac=CALM,
        use_frac=mean_frac,
        wait_growth_ratio=_wait(n_devices, use) / _wait(n_devices, CALM),
    )


def _wait(n_devices: int, use_frac: float) -> float:
    """Mean wait over the time of service."""
    return erlang_c(n_devices, use_frac) / (n_devices * (1.0 - use_frac))

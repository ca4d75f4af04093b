"""How many replicas the present load calls for: cache, queue and use, whichever asks for most."""

import math
from collections.abc import Sequence

from gpuplan.diagnose.bands import safe_use
from gpuplan.diagnose.features import EngineView, Stat
from gpuplan.domain.telemetry.diagnosis import UseFigures


def recommended_replicas(
    engines: Sequence[EngineView], use: UseFigures | None, *, cache_target_frac: float
) -> tuple[int, str]:
    """Replicas and the reason for so many; those that run now where nothing asks for others.

    Each measure is scaled to its own target: the cache to below its cliff, requests in flight to
    those that run without a queue, use to what a pool of this size can bear.
    """
    n = len(engines)
    if n == 0:
        return 0, "no engine reports"
    wants = [(1.0, "nothing asks for another number")]
    cache = [stat for engine in engines if (stat := engine.stat("kv_cache_frac")) is not None]
    if cache:
        share = _highest(cache) / cache_target_frac
        wants.append((share, f"the cache is at {_highest(cache):.0%}"))
    waiting = sum(engine.mean("requests_waiting_count") or 0.0 for engine in engines)
    running = sum(engine.mean("requests_running_count") or 0.0 for engine in engines)
    if waiting > n and running > 0:
        wants.append(((running + waiting) / running, f"{waiting:.0f} requests wait"))
    if not cache and use is not None:
        wants.append((use.peak_frac / safe_use(n), f"the peak minute is at {use.peak_frac:.0%}"))
    most = max(wants[1:], default=wants[0])
    # Fewer only where every measure that there is leaves room for it.
    factor, reason = most if len(wants) > 1 else wants[0]
    return max(1, math.ceil(n * factor - 1e-9)), reason


def _highest(stats: Sequence[Stat]) -> float:
    """The fullest replica's usual high: one full cache is enough for a cliff."""
    return max(stat.high for stat in stats)

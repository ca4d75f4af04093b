"""Shares of a node's processors and memory, from counters that give only their parts."""

import math
from collections import defaultdict
from itertools import pairwise

from gpuplan.observe.collect import Collector
from gpuplan.observe.names import Word

CPU = "node_cpu_seconds_total"
MEMORY = {
    "node_memory_MemTotal_bytes": "total",
    "node_memory_MemAvailable_bytes": "free",
}
_NOT_WORK = ("idle", "iowait", "steal")


class HostParts:
    """Takes parts as they come; `finish` says their shares."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._cpu_s: dict[int, dict[float, dict[str, float]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(float))
        )
        self._memory: dict[tuple[int, float], dict[str, float]] = defaultdict(dict)

    def take(self, name: str, mode: str, *, subject: int, at_s: float, value: float) -> None:
        """One part: seconds of a core in a mode, or bytes of memory."""
        if name == CPU:
            # Seconds of all cores add up: their shares are those of the node.
            self._cpu_s[subject][at_s][mode] += value
        else:
            self._memory[subject, at_s][MEMORY[name]] = value

    def finish(self) -> None:
        """Share of the processors' time between two samples, and of memory at each."""
        for subject, by_time in self._cpu_s.items():
            rows = sorted(by_time.items())
            if len(rows) < 2:
                self._collector.quirk("a counter read once has no rate", CPU, "left out")
            for (at_s, before), (_, after) in pairwise(rows):
                self._shares(subject, at_s, before, after)
        for (subject, at_s), parts in self._memory.items():
            if "total" in parts:
                word = Word("host_memory_total_bytes")
                self._collector.sample(subject, word, at_s, parts["total"])
            if len(parts) == 2:
                used = parts["total"] - parts["free"]
                self._collector.sample(subject, Word("host_memory_used_bytes"), at_s, used)

    def _shares(
        self, subject: int, at_s: float, before: dict[str, float], after: dict[str, float]
    ) -> None:
        spent_s = {mode: after[mode] - before.get(mode, 0.0) for mode in after}
        if min(spent_s.values()) < 0:  # a restart: counters begin anew
            self._collector.quirk("a counter began anew", CPU, "counted from zero")
            spent_s = dict(after)
        whole_s = sum(spent_s.values())
        idle_s = sum(spent_s.get(mode, 0.0) for mode in _NOT_WORK)
        busy = 1.0 - idle_s / whole_s if whole_s > 0 else math.nan
        waiting = spent_s.get("iowait", 0.0) / whole_s if whole_s > 0 else math.nan
        self._collector.sample(subject, Word("cpu_util_frac"), at_s, busy)
        if "iowait" in spent_s:
            self._collector.sample(subject, Word("cpu_iowait_frac"), at_s, waiting)

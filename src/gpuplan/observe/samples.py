"""A Prometheus sample, whatever carried it here, becomes a reading of the vocabulary.

Shares of a node's processors and memory, from counters that give only their parts.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from gpuplan.domain.telemetry.observation import Allocation, Subject
from gpuplan.observe.collect import NO_TIME, Collector
from gpuplan.observe.formats import PERCENT_NAMES, is_ratio
from gpuplan.observe.guard import is_time, number
from gpuplan.observe.names import HISTOGRAMS, LABELS, MIG_LABELS, PROMETHEUS, QUOTIENTS, Word

CPU = "node_cpu_seconds_total"
MEMORY = {
    "node_memory_MemTotal_bytes": "total",
    "node_memory_MemAvailable_bytes": "free",
}
_NOT_WORK = ("idle", "iowait", "steal")


class Sample(NamedTuple):
    """One line of an exposition, or one point of a query."""

    name: str
    labels: Mapping[str, str]
    value: float
    at_s: float


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
                self._collector.quirk("a counter read once has no rate", CPU, "excluded")
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


NODE_GPUS, POD_GPUS = "kube_node_status_allocatable", "kube_pod_container_resource_requests"
# As kube-state-metrics writes resources: every other character is an underscore.
KUBE_GPU = re.compile(r"(nvidia|amd)_com_(gpu|mig_\w+)|gpu_intel_com_\w+|google_com_tpu")


class KubeParts:
    """GPUs of nodes and pods from kube-state-metrics: handed out, asked for, free."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._requested: dict[float, dict[tuple[str, str], float]] = defaultdict(dict)

    def take(self, sample: Sample) -> None:
        """One reading; requests for other resources say nothing of GPUs."""
        labels, node = sample.labels, sample.labels.get("node", "")
        if not KUBE_GPU.fullmatch(labels.get("resource", "")):
            return
        is_pod = sample.name == POD_GPUS
        if is_pod:
            requested = self._requested[sample.at_s]
        if is_pod and not node:
            requested[labels.get("namespace", ""), labels.get("pod", "")] = sample.value
            return
        word = Word("allocated_count" if is_pod else "total_count")
        subject = self._collector.subject(Subject(node=node))
        if is_pod:
            self._collector.add_up(subject, word)
        self._collector.sample(subject, word, sample.at_s, sample.value)

    def finish(self) -> None:
        """What waits at every instant, and the pods that wait at the last one."""
        subject = self._collector.subject(Subject()) if self._requested else 0
        for at_s, requested in self._requested.items():
            self._collector.sample(subject, Word("pending_count"), at_s, sum(requested.values()))
        for (team, pod), gpus in (
            self._requested[max(self._requested)].items() if self._requested else ()
        ):
            waits = Allocation(job=pod, team=team, n_accelerators=gpus, state="pending")
            self._collector.allocation(waits)


_SUMMED = ("requests_per_s", "disk_", "network_", "fabric_", "requests_failed_per_s")


def take_samples(collector: Collector, samples: Iterable[Sample]) -> None:
    """Hand every sample of a known name to the collector; count the names that are not known."""
    retained: dict[str, list[Sample]] = defaultdict(list)
    hits: dict[tuple[int, float], dict[str, float]] = defaultdict(dict)
    unknown: dict[str, int] = defaultdict(int)
    parts, kube = HostParts(collector), KubeParts(collector)
    for sample in samples:
        if not is_time(sample.at_s):
            collector.quirk(NO_TIME, f"{sample.name} at {sample.at_s:g}", "excluded")
        elif sample.name in PERCENT_NAMES:
            retained[sample.name].append(sample)
        elif sample.name == CPU or sample.name in MEMORY:
            subject = collector.subject(subject_of(sample.labels))
            parts.take(
                sample.name,
                sample.labels.get("mode", ""),
                subject=subject,
                at_s=sample.at_s,
                value=sample.value,
            )
        elif sample.name in (NODE_GPUS, POD_GPUS):
            kube.take(sample)
        elif not _take(collector, sample, hits):
            unknown[sample.name] += 1
    for name, group in retained.items():
        _take_utilization(collector, name, group)
    _take_quotients(collector, hits)
    parts.finish()
    kube.finish()
    if unknown:
        names, n = ", ".join(sorted(unknown)[:6]), sum(unknown.values())
        collector.quirk("names outside the vocabulary", names, "excluded", n_cases=n)


def subject_of(labels: Mapping[str, str]) -> Subject:
    """What a label set is about; the same labels come with every sample, so answers are kept."""
    return _subject_of(tuple(labels.items()))


@lru_cache(maxsize=65536)
def _subject_of(pairs: tuple[tuple[str, str], ...]) -> Subject:
    """What these labels are about; an exporter's own pod and namespace are not the user's."""
    labels = dict(pairs)
    found = {
        what: next((labels[name] for name in names if labels.get(name)), "")
        for what, names in LABELS.items()
    }
    is_device = bool(found["device"] or found["uuid"])
    share = " ".join(labels[name] for name in MIG_LABELS if labels.get(name))
    if not is_device and labels.get("engine", "").isdigit():
        share = f"engine {labels['engine']}"  # one of several behind one address
    return Subject(
        node=found["node"].rsplit(":", 1)[0] if is_device else found["node"],
        device=found["device"],
        uuid=found["uuid"],
        model=found["model"],
        share=share,
        team=found["team"],
        job=found["job"],
        service="" if is_device else found["service"],
    )


def _take(
    collector: Collector, sample: Sample, hits: dict[tuple[int, float], dict[str, float]]
) -> bool:
    word = PROMETHEUS.get(sample.name)
    if word is not None:
        subject = collector.subject(subject_of(sample.labels))
        if word.metric.startswith(_SUMMED):
            collector.add_up(subject, word)
        collector.sample(subject, word, sample.at_s, sample.value)
        return True
    if sample.name in QUOTIENTS:
        subject = collector.subject(subject_of(sample.labels))
        hits[subject, sample.at_s][QUOTIENTS[sample.name][1]] = sample.value
        return True
    return _take_histogram(collector, sample)


def _take_histogram(collector: Collector, sample: Sample) -> bool:
    base, _, part = sample.name.rpartition("_")
    metric = HISTOGRAMS.get(base)
    if metric is None or part not in ("bucket", "sum", "count"):
        return False
    subject = collector.subject(subject_of(sample.labels))
    if part == "bucket":
        upper = number(sample.labels.get("le", "nan").replace("+Inf", "inf"))
        if not math.isnan(upper):
            collector.bucket(subject, metric, sample.at_s, upper=upper, count=sample.value)
    elif part == "sum":
        collector.bucket_sum(subject, metric, sample.at_s, sample.value)
    else:
        collector.bucket_number(subject, metric, sample.at_s, sample.value)
    return True


def _take_utilization(collector: Collector, name: str, group: list[Sample]) -> None:
    word = PROMETHEUS[name]
    if is_ratio(name, (sample.value for sample in group)):
        collector.quirk(
            "an old name with ratios", name, "read as a ratio: whole percents have no fractions"
        )
        word = Word(word.metric)
    for sample in group:
        subject = collector.subject(subject_of(sample.labels))
        collector.sample(subject, word, sample.at_s, sample.value)


def _take_quotients(collector: Collector, hits: dict[tuple[int, float], dict[str, float]]) -> None:
    """Share of hits among the queries between two samples; nothing asked, nothing said."""
    by_subject: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for (subject, at_s), pair in sorted(hits.items()):
        if len(pair) == 2:
            by_subject[subject].append((at_s, pair["over"], pair["under"]))
    word = Word("prefix_hit_frac")
    for subject, rows in by_subject.items():
        for (at_s, over, under), (_, later_over, later_under) in pairwise(rows):
            requested, found = later_under - under, later_over - over
            if requested < 0:  # the engine was restarted: it counts from zero
                requested, found = later_under, later_over
            collector.sample(subject, word, at_s, found / requested if requested > 0 else math.nan)

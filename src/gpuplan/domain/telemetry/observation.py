"""What monitoring saw: series of known metrics in base units, about devices, over time.

Times are seconds: since 1970 where the source tells the date, else since its first sample.
A value that the source did not give is NaN, never 0.
"""

from dataclasses import field
from typing import Literal

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption

MetricKind = Literal["device", "host", "engine", "cluster"]
Sampling = Literal["instant", "mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One word of the vocabulary that every reader translates into."""

    name: str  # ends in its unit
    kind: MetricKind
    what: str


def _words(kind: MetricKind, *pairs: tuple[str, str]) -> tuple[Metric, ...]:
    return tuple(Metric(name=name, kind=kind, what=what) for name, what in pairs)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *_words(
            "device",
            ("gpu_util_frac", "share of the time in which any kernel ran"),
            ("memory_util_frac", "share of the time in which device memory was read or written"),
            ("engine_active_frac", "share of the time in which the graphics engine was busy"),
            ("sm_active_frac", "share of processors with work, over time"),
            ("sm_occupancy_frac", "share of warp slots in use, over time"),
            ("tensor_active_frac", "share of cycles in which tensor units issued"),
            ("fp16_active_frac", "share of cycles in which the half-precision pipe issued"),
            ("fp32_active_frac", "share of cycles in which the single-precision pipe issued"),
            ("fp64_active_frac", "share of cycles in which the double-precision pipe issued"),
            ("dram_active_frac", "share of cycles in which device memory moved data"),
            ("power_w", "drawn by the board"),
            ("power_limit_w", "that the board may draw"),
            ("energy_j_per_s", "rate of the energy counter"),
            ("temperature_c", "of the chip"),
            ("memory_temperature_c", "of device memory"),
            ("sm_clock_hz", "of the processors"),
            ("memory_clock_hz", "of device memory"),
            ("memory_used_bytes", "of device memory"),
            ("memory_free_bytes", "of device memory"),
            ("memory_total_bytes", "of device memory"),
            ("pcie_tx_bytes_per_s", "from the device to the host"),
            ("pcie_rx_bytes_per_s", "from the host to the device"),
            ("pcie_replays_per_s", "transfers that had to be repeated"),
            ("link_tx_bytes_per_s", "sent over the scale-up links of one device"),
            ("link_rx_bytes_per_s", "received over the scale-up links of one device"),
            ("throttle_bits", "reasons for lower clocks, as a bit field"),
            ("xid_code", "last fault that the driver reported"),
            ("ecc_corrected_per_s", "memory errors mended"),
            ("ecc_uncorrected_per_s", "memory errors not mended"),
            ("remapped_rows_count", "memory rows taken out of service"),
        ),
        *_words(
            "host",
            ("cpu_util_frac", "share of all cores' time"),
            ("cpu_iowait_frac", "share of all cores' time spent waiting for storage"),
            ("host_memory_used_bytes", "of the node"),
            ("host_memory_total_bytes", "of the node"),
            ("host_memory_util_frac", "of the node or container"),
            ("disk_read_bytes_per_s", "of all disks"),
            ("disk_write_bytes_per_s", "of all disks"),
            ("disk_busy_frac", "share of the time in which a disk had work"),
            ("network_rx_bytes_per_s", "of the front network"),
            ("network_tx_bytes_per_s", "of the front network"),
            ("network_line_bytes_per_s", "line rate of the front network, one direction"),
            ("tcp_sent_per_s", "TCP segments sent"),
            ("tcp_retransmitted_per_s", "TCP segments sent again"),
            ("fabric_rx_bytes_per_s", "of the network between nodes, all ports"),
            ("fabric_tx_bytes_per_s", "of the network between nodes, all ports"),
            ("fabric_line_bytes_per_s", "line rate of all ports, one direction"),
            ("node_power_w", "of the whole node"),
            ("switch_fault_code", "last fault that the manager of the scale-up fabric reported"),
        ),
        *_words(
            "engine",
            ("requests_running_count", "sequences in the batch"),
            ("requests_waiting_count", "in the queue"),
            ("requests_per_s", "answered"),
            ("requests_failed_per_s", "that ended in an error"),
            ("kv_cache_frac", "of the key-value cache in use"),
            ("prefix_hit_frac", "of prompt tokens found in the cache"),
            ("preemptions_per_s", "sequences thrown out of the batch"),
            ("input_tokens_per_s", "read"),
            ("output_tokens_per_s", "written"),
            ("max_sequences_count", "that the engine may run at once"),
            ("ttft_mean_s", "to the first token"),
            ("tpot_mean_s", "per later token"),
            ("e2e_mean_s", "whole request"),
            ("wait_mean_s", "in the queue"),
            ("load_mean_s", "to load a model or an adapter"),
            ("step_s", "one training step or iteration"),
            ("samples_per_s", "of a training job"),
        ),
        *_words(
            "cluster",
            ("allocated_frac", "of all accelerators, given to jobs"),
            ("allocated_count", "accelerators given to jobs"),
            ("idle_count", "accelerators not given to jobs"),
            ("total_count", "accelerators"),
            ("pending_count", "accelerators that waiting jobs ask for"),
            ("submitted_count", "accelerators that newly submitted jobs ask for"),
            ("active_nodes_count", "nodes that run something"),
            ("total_nodes_count", "nodes"),
            ("replicas_count", "of a service"),
            ("available_count", "instances that a market could give"),
            ("jobs_running_count", "jobs, not accelerators"),
            ("jobs_pending_count", "jobs, not accelerators"),
            ("jobs_submitted_per_s", "new jobs"),
            ("jobs_failed_per_s", "jobs that ended in an error"),
            ("share_used_ratio", "of an account's fair share"),
        ),
    )
}
HISTOGRAMS = ("ttft_s", "tpot_s", "e2e_s", "wait_s", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a series is about: a device, a part of one, a node, an engine, a team's queue."""

    node: str = ""
    device: str = ""  # index or id within the node; empty: not one device
    uuid: str = ""
    model: str = ""  # of the accelerator, as the source writes it
    share: str = ""  # MIG profile and instance
    team: str = ""  # namespace, account, virtual cluster
    job: str = ""  # pod, job id
    service: str = ""  # engine instance, model served
    tdp_w: float | None = None
    memory_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric of one subject; times rise strictly."""

    metric: str  # of METRICS
    subject: int  # row of Telemetry.subjects
    at_s: Floats
    value: Floats  # NaN: not given

    def mean(self) -> float:
        """Time-weighted: a sample stands until the next, the last one for the usual step."""
        return float(np.average(self.value[self.is_given], weights=self.weight_s[self.is_given]))

    @property
    def is_given(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Where there is a value."""
        return np.isfinite(self.value)

    @property
    def weight_s(self) -> Floats:
        """How long each sample stands; never longer than three usual steps: then it is a gap."""
        if len(self.at_s) < 2:
            return np.ones(len(self.at_s))
        gaps_s = np.diff(self.at_s)
        usual_s = _middle(gaps_s)
        return floats(np.minimum(np.append(gaps_s, usual_s), 3.0 * usual_s))


def _middle(values: Floats) -> float:
    """The median; asked for every series, where numpy's checks would cost more than the answer."""
    ordered, k = np.sort(values), len(values) // 2
    return float(ordered[k] if len(values) % 2 else (ordered[k - 1] + ordered[k]) / 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts by upper bound over time: increments since the sample before, not totals."""

    metric: str  # of HISTOGRAMS
    subject: int
    at_s: Floats
    upper: Floats  # bounds of the buckets, the last one infinite; in the metric's unit
    count: Floats  # [sample, bucket] in the bucket alone, not below it
    total: Floats  # [sample] sum of the values


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A label that the source states for a stretch of time: a phase, a job's state."""

    subject: int
    begin_s: float
    end_s: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Accelerators that a job holds or asks for."""

    job: str
    team: str
    n_accelerators: float
    state: str  # running, pending, completed, failed, cancelled …, as the source means it
    submit_s: float | None = None
    begin_s: float | None = None
    end_s: float | None = None  # None: not ended, or not told
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """Something odd that a reader met, and what it did about it."""

    what: str
    where: str  # file and line, or series
    n_cases: int
    done: str  # dropped, mended, kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Everything that one source said; nothing of it was dropped in silence."""

    source: str
    format: str  # the reader that took it
    subjects: tuple[Subject, ...]
    series: tuple[Series, ...]
    histograms: tuple[Histogram, ...] = ()
    spans: tuple[Span, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    quirks: tuple[Quirk, ...] = ()
    sampling: Sampling = "instant"
    is_dated: bool = False  # times count from 1970, UTC
    assumptions: tuple[Assumption, ...] = ()
    # Filled by the first question; a copy with other series starts with none.
    places: dict[tuple[str, int], Series] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def of(self, metric: str) -> tuple[Series, ...]:
        """All series of a metric."""
        return tuple(series for series in self.series if series.metric == metric)

    def one(self, metric: str, subject: int) -> Series | None:
        """The series of a metric for one subject, or None."""
        if not self.places:
            for series in self.series:
                self.places.setdefault((series.metric, series.subject), series)
        return self.places.get((metric, subject))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that were seen, in the order of the vocabulary."""
        seen = {series.metric for series in self.series}
        return tuple(name for name in METRICS if name in seen)

"""What monitoring saw: series of known metrics in base units, about devices, over time.

Times are seconds: since 1970 where the source tells the date, else since its first sample.
A value that the source did not give is NaN, never 0.
"""

from dataclasses import field
from typing import Literal

import numpy as np

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption

Sampling = Literal["instant", "mean"]
# The vocabulary that every reader translates into: a name ends in its unit; what it tells.
METRICS = {
    row["metric"]: row["what"] for row in packaged_rows("gpuplan.domain", "data/metrics.csv")
}


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

    metric: str  # ttft_s, tpot_s, e2e_s, wait_s, input_tokens or output_tokens
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
        observed = {series.metric for series in self.series}
        return tuple(name for name in METRICS if name in observed)

"""Tables with one row for each instant and subject: which columns mean what.

A format is known by columns that only it has. Units come from `data/names.csv`, or from the
brackets that nvidia-smi writes behind a name.

Old names, new units: collectors that keep DCGM's names but write ratios.

DCGM counts utilization in whole percent. A value between 0 and 1 that is not whole can therefore
only be a ratio, and then all values of that name in the source are. Values that are all 0 or 1
prove nothing: the name's own unit stands.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from gpuplan.domain.telemetry.observation import METRICS, Sampling
from gpuplan.observe.names import MEGA, MIB, PERCENT, PROMETHEUS, Word, words_of

PERCENT_NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL")
_TIMES = (
    *("timestamp", "timestamp_sec", "timestamp_anon", "time", "record_time", "date", "ts"),
    *("datetime", "day", "week", "month"),
)
_SUBJECTS = {
    "node": ("hostname", "node", "host", "instance"),
    "device": ("gpu", "gpu_id", "index", "gpu_index"),
    "uuid": ("uuid", "gpu_uuid"),
    "model": ("gpu_model", "modelname", "name", "gpu_name"),
    "team": ("namespace", "team", "account", "vc", "cluster"),
    "job": ("pod", "container_ip", "job_id", "job"),
    "service": ("run", "service", "request_type", "source"),
}


class TableFormat(NamedTuple):
    """What one kind of table holds; column names in small letters."""

    name: str
    needs: tuple[str, ...]
    words: dict[str, Word]
    times: tuple[str, ...] = _TIMES
    subjects: dict[str, tuple[str, ...]] = _SUBJECTS
    phase: str = ""
    summed: dict[str, Word] = {}  # noqa: RUF012 patterns of columns that are parts of one metric
    sampling: Sampling = "instant"
    profiling: tuple[str, ...] = ()  # counters that are lost together


def _format(name: str, *needs: str, **more: Any) -> TableFormat:
    """The format whose columns `data/names.csv` lists under this name."""
    summed = words_of(name, kind="summed")
    return TableFormat(name=name, needs=needs, words=words_of(name), summed=summed, **more)


GPU_TELEMETRY = _format(
    "GPU telemetry CSV",
    "gpu_util_pct",
    "power_w",
    phase="phase",
    profiling=("sm_active", "tensor_active", "dram_active", "fp16_active"),
)
# Columns named like fields of DCGM or like our own metrics: exports of dashboards, users' files.
GENERIC = TableFormat(
    name="table of metrics",
    needs=(),
    words={name.lower(): word for name, word in PROMETHEUS.items()}
    | {name: Word(name) for name in METRICS}
    | words_of("table of metrics"),
)
_PICTURES = {"times": ("gmt_create",), "subjects": {"service": ("predict_type",)}}
_MINUTES = {"times": ("timestamp_utc",), "sampling": "mean"}
_CLIENTS = {"service": ("model",), "job": ("client",)}
FORMATS = (
    GPU_TELEMETRY,
    _format("InfiniBand ports CSV", "ib0_tx_bytes_s", phase="phase"),
    _format("board controller CSV", "sys_power_w", phase="phase"),
    _format("nvidia-smi CSV", "utilization.gpu"),
    _format("amd-smi CSV", "gfx_activity", "socket_power"),
    _format("cluster by the minute", "running_gpu_num", "total_gpu_num", "gpu_utilization"),
    _format("cluster submissions", "submit_gpu_num", "start_gpu_num"),
    _format("active nodes", "active", "total", "time"),
    _format("vLLM log table", "prompt_throughput", "generation_throughput", "num_running"),
    _format("GPU monitor log", "gpu_utilization", "gpu_used_mem", "gpu_total_mem"),
    _format("vLLM counters CSV", "kv_cache_usage_pct", "num_requests_running"),
    _format("PCIe transfer CSV", "tx_pci_mb_per_sec", "rx_pci_mb_per_sec"),
    _format(
        "DCGM summary by job",
        "smutilization_pct_avg",
        "powerusage_watts_avg",
        times=(),
        sampling="mean",
    ),
    _format(
        "requests of a load test",
        "ttft_ms",
        "tpot_ms",
        "latency_ms",
        "relative_time_sec",
        times=("relative_time_sec",),
    ),
    _format("answers of a load test", "first_chunk_time", "total_chunk_time", "record_time"),
    _format("requests for pictures", "gmt_create", "exec_time_seconds", **_PICTURES),
    _format("requests by the minute", "rpm_mid_calibrated", "timestamp_utc", **_MINUTES),
    _format(
        "rates by client",
        "client",
        "t_s",
        "rate_rps",
        times=("t_s",),
        subjects=_CLIENTS,
        sampling="mean",
    ),
)

_UNITS = {"%": PERCENT, "mib": MIB, "mhz": MEGA, "w": 1.0, "c": 1.0, "gib": 2.0**30, "b": 1.0}
_BRACKET = re.compile(r"\s{0,9}\[([^\[\]]*)\]\s{0,9}$")


def plain(column: str) -> str:
    """A column's name without unit, case and quotes."""
    return _BRACKET.sub("", column.strip().strip('"')).lower()


def unit_scale(column: str) -> float:
    """What the unit in brackets multiplies by; 1 where there is none."""
    match = _BRACKET.search(column)
    return _UNITS.get(match[1].strip().lower(), 1.0) if match else 1.0


def format_of(columns: tuple[str, ...]) -> TableFormat | None:
    """The format that these plain columns belong to, or None."""
    for one in FORMATS:
        if all(column in columns for column in one.needs):
            return one
    has_word = any(column in GENERIC.words for column in columns)
    has_time = any(column in GENERIC.times for column in columns)
    return GENERIC if has_word and has_time else None


def is_ratio(name: str, values: Iterable[float]) -> bool:
    """Whether this old name carries ratios here."""
    if name not in PERCENT_NAMES:
        return False
    observed = [value for value in values if not math.isnan(value)]
    return bool(observed) and max(observed) <= 1.0 and any(value % 1.0 for value in observed)

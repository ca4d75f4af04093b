"""Tables with one row for each instant and subject: which columns mean what.

A format is known by columns that only it has. Units come from here, or from the brackets that
nvidia-smi writes behind a name.

Old names, new units: collectors that keep DCGM's names but write ratios.

DCGM counts utilization in whole percent. A value between 0 and 1 that is not whole can therefore
only be a ratio, and then all values of that name in the source are. Values that are all 0 or 1
prove nothing: the name's own unit stands.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from gpuplan.domain.telemetry.observation import METRICS, Sampling
from gpuplan.observe.names import MEGA, MIB, MILLI, PERCENT, PROMETHEUS, Word

PERCENT_NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL")


_TIMES = ("timestamp", "timestamp_sec", "timestamp_anon", "time", "record_time", "date", "ts")
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


_COUNT = dict[str, Word]
GPU_TELEMETRY = TableFormat(
    name="GPU telemetry CSV",
    needs=("gpu_util_pct", "power_w"),
    words={
        "power_w": Word("power_w"),
        "temp_c": Word("temperature_c"),
        "mem_used_mib": Word("memory_used_bytes", MIB),
        "mem_total_mib": Word("memory_total_bytes", MIB),
        "gpu_util_pct": Word("gpu_util_frac", PERCENT),
        "mem_util_pct": Word("memory_util_frac", PERCENT),
        "sm_active": Word("sm_active_frac"),
        "tensor_active": Word("tensor_active_frac"),
        "dram_active": Word("dram_active_frac"),
        "fp16_active": Word("fp16_active_frac"),
        "pcie_tx_bytes_s": Word("pcie_tx_bytes_per_s"),
        "pcie_rx_bytes_s": Word("pcie_rx_bytes_per_s"),
        "nvlink_tx_bytes_s": Word("link_tx_bytes_per_s"),
        "nvlink_rx_bytes_s": Word("link_rx_bytes_per_s"),
        "throttle_reasons": Word("throttle_bits"),
        "energy_mj": Word("energy_j_per_s", MILLI, is_counter=True),
    },
    phase="phase",
    profiling=("sm_active", "tensor_active", "dram_active", "fp16_active"),
)
FABRIC = TableFormat(
    name="InfiniBand ports CSV",
    needs=("ib0_tx_bytes_s",),
    words={},
    summed={
        r"ib\d+_tx_bytes_s": Word("fabric_tx_bytes_per_s"),
        r"ib\d+_rx_bytes_s": Word("fabric_rx_bytes_per_s"),
    },
    phase="phase",
)
BOARD = TableFormat(
    name="board controller CSV",
    needs=("sys_power_w",),
    words={"sys_power_w": Word("node_power_w")},
    phase="phase",
)
SMI = TableFormat(
    name="nvidia-smi CSV",
    needs=("utilization.gpu",),
    words={
        "power.draw": Word("power_w"),
        "power.draw.instant": Word("power_w"),
        "power.limit": Word("power_limit_w"),
        "utilization.gpu": Word("gpu_util_frac"),
        "utilization.memory": Word("memory_util_frac"),
        "memory.used": Word("memory_used_bytes"),
        "memory.free": Word("memory_free_bytes"),
        "memory.total": Word("memory_total_bytes"),
        "temperature.gpu": Word("temperature_c"),
        "temperature.memory": Word("memory_temperature_c"),
        "clocks.current.sm": Word("sm_clock_hz"),
        "clocks.sm": Word("sm_clock_hz"),
        "clocks.current.memory": Word("memory_clock_hz"),
        "remapped_rows.uncorrectable": Word("remapped_rows_count"),
    },
)
AMD_SMI = TableFormat(
    name="amd-smi CSV",
    needs=("gfx_activity", "socket_power"),
    words={
        "gfx_activity": Word("gpu_util_frac", PERCENT),
        "umc_activity": Word("memory_util_frac", PERCENT),
        "socket_power": Word("power_w"),
        "gfx_0_clk": Word("sm_clock_hz", MEGA),
        "mem_0_clk": Word("memory_clock_hz", MEGA),
        "hotspot": Word("temperature_c"),
        "mem": Word("memory_temperature_c"),
        "used_vram": Word("memory_used_bytes", MIB),
        "total_vram": Word("memory_total_bytes", MIB),
    },
)
CLUSTER_MINUTES = TableFormat(
    name="cluster by the minute",
    needs=("running_gpu_num", "total_gpu_num", "gpu_utilization"),
    words={
        "gpu_utilization": Word("allocated_frac"),
        "running_gpu_num": Word("allocated_count"),
        "idle_gpu_num": Word("idle_count"),
        "pending_gpu_num": Word("pending_count"),
    },
)
CLUSTER_JOBS = TableFormat(
    name="cluster submissions",
    needs=("submit_gpu_num", "start_gpu_num"),
    words={"submit_gpu_num": Word("submitted_count")},
)
ACTIVE_NODES = TableFormat(
    name="active nodes",
    needs=("active", "total", "time"),
    words={"active": Word("active_nodes_count"), "total": Word("total_nodes_count")},
)
VLLM_LOG = TableFormat(
    name="vLLM log table",
    needs=("prompt_throughput", "generation_throughput", "num_running"),
    words={
        "prompt_throughput": Word("input_tokens_per_s"),
        "generation_throughput": Word("output_tokens_per_s"),
        "num_running": Word("requests_running_count"),
        "num_pending": Word("requests_waiting_count"),
        "gpu_kvcache_usage": Word("kv_cache_frac", PERCENT),
    },
)
GPU_LOG = TableFormat(
    name="GPU monitor log",
    needs=("gpu_utilization", "gpu_used_mem", "gpu_total_mem"),
    words={
        "gpu_utilization": Word("gpu_util_frac", PERCENT),
        "gpu_used_mem": Word("memory_used_bytes", MIB),
        "gpu_total_mem": Word("memory_total_bytes", MIB),
        "gpu_temperature": Word("temperature_c"),
    },
)
VLLM_COUNTERS = TableFormat(
    name="vLLM counters CSV",
    needs=("kv_cache_usage_pct", "num_requests_running"),
    words={
        "kv_cache_usage_pct": Word("kv_cache_frac", PERCENT),
        "num_requests_running": Word("requests_running_count"),
        "num_requests_waiting": Word("requests_waiting_count"),
        "prompt_tokens_total": Word("input_tokens_per_s", is_counter=True),
        "generation_tokens_total": Word("output_tokens_per_s", is_counter=True),
        "num_preemptions_total": Word("preemptions_per_s", is_counter=True),
        "request_success_total": Word("requests_per_s", is_counter=True),
        "interval_cache_hit_rate_pct": Word("prefix_hit_frac", PERCENT),
    },
)
PCIE = TableFormat(
    name="PCIe transfer CSV",
    needs=("tx_pci_mb_per_sec", "rx_pci_mb_per_sec"),
    words={
        "tx_pci_mb_per_sec": Word("pcie_tx_bytes_per_s", MEGA),
        "rx_pci_mb_per_sec": Word("pcie_rx_bytes_per_s", MEGA),
    },
)
JOB_MEANS = TableFormat(
    name="DCGM summary by job",
    needs=("smutilization_pct_avg", "powerusage_watts_avg"),
    words={
        "smutilization_pct_avg": Word("gpu_util_frac", PERCENT),
        "memoryutilization_pct_avg": Word("memory_util_frac", PERCENT),
        "powerusage_watts_avg": Word("power_w"),
        "maxgpumemoryused_bytes": Word("memory_used_bytes"),
        "pcietxbandwidth_megabytes_avg": Word("pcie_tx_bytes_per_s", MEGA),
        "pcierxbandwidth_megabytes_avg": Word("pcie_rx_bytes_per_s", MEGA),
    },
    times=(),
    sampling="mean",
)
CLIENT = TableFormat(
    name="requests of a load test",
    needs=("ttft_ms", "tpot_ms", "latency_ms", "relative_time_sec"),
    words={
        "ttft_ms": Word("ttft_mean_s", MILLI),
        "tpot_ms": Word("tpot_mean_s", MILLI),
        "latency_ms": Word("e2e_mean_s", MILLI),
    },
    times=("relative_time_sec",),
)
ANSWERS = TableFormat(
    name="answers of a load test",
    needs=("first_chunk_time", "total_chunk_time", "record_time"),
    words={
        "first_chunk_time": Word("ttft_mean_s"),
        "total_chunk_time": Word("e2e_mean_s"),
        "gpu_utilization": Word("gpu_util_frac", PERCENT),
        "gpu_used_mem": Word("memory_used_bytes", MIB),
        "gpu_temperature": Word("temperature_c"),
    },
)
PICTURES = TableFormat(
    name="requests for pictures",
    needs=("gmt_create", "exec_time_seconds"),
    words={"exec_time_seconds": Word("e2e_mean_s")},
    times=("gmt_create",),
    subjects={"service": ("predict_type",)},
)
REQUEST_MINUTES = TableFormat(
    name="requests by the minute",
    needs=("rpm_mid_calibrated", "timestamp_utc"),
    words={"rpm_mid_calibrated": Word("requests_per_s", 1.0 / 60.0)},
    times=("timestamp_utc",),
    sampling="mean",
)
CLIENT_RATES = TableFormat(
    name="rates by client",
    needs=("client", "t_s", "rate_rps"),
    words={"rate_rps": Word("requests_per_s")},
    times=("t_s",),
    subjects={"service": ("model",), "job": ("client",)},
    sampling="mean",
)
# Columns named like fields of DCGM or like our own metrics: exports of dashboards, users' files.
GENERIC = TableFormat(
    name="table of metrics",
    needs=(),
    words={name.lower(): word for name, word in PROMETHEUS.items()}
    | {name: Word(name) for name in METRICS}
    | {
        "gpu_util": Word("gpu_util_frac", PERCENT),
        "gpu utilization (%)": Word("gpu_util_frac", PERCENT),
        "utilization_pct": Word("gpu_util_frac", PERCENT),
        "sm_active": Word("sm_active_frac"),
        "tensor_active": Word("tensor_active_frac"),
        "dram_active": Word("dram_active_frac"),
        "power_watts": Word("power_w"),
    },
)
FORMATS = (
    GPU_TELEMETRY,
    FABRIC,
    BOARD,
    SMI,
    AMD_SMI,
    CLUSTER_MINUTES,
    CLUSTER_JOBS,
    ACTIVE_NODES,
    VLLM_LOG,
    GPU_LOG,
    VLLM_COUNTERS,
    PCIE,
    JOB_MEANS,
    CLIENT,
    ANSWERS,
    PICTURES,
    REQUEST_MINUTES,
    CLIENT_RATES,
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
    seen = [value for value in values if not math.isnan(value)]
    return bool(seen) and max(seen) <= 1.0 and any(value % 1.0 for value in seen)

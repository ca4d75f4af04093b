"""Tables that are not one row for each instant: long ones, single values, distributions, jobs."""

import math
from collections.abc import Iterable, Iterator, Mapping

from gpuplan.domain.telemetry.observation import Allocation, Subject
from gpuplan.observe.clock import seconds
from gpuplan.observe.collect import Collector
from gpuplan.observe.names import MILLI, PERCENT, Word
from gpuplan.observe.samples import Sample, take_samples

Row = Mapping[str, object]
# Files that hold one metric each: the file's name says which [GenTD26].
_BY_FILE = {
    "pod_gpu_duty_cycle": Word("gpu_util_frac", PERCENT),
    "pod_gpu_memory_used_bytes": Word("memory_used_bytes"),
    "pod_memory_util": Word("host_memory_util_frac"),
    "qps": Word("requests_per_s"),
    "queue_rt": Word("wait_mean_s", MILLI),
    "queue_size": Word("requests_waiting_count"),
    "pipeline_inference": Word("e2e_mean_s", MILLI),
    "model_predict": Word("step_s", MILLI),
    "controlnet_latency": Word("step_s", MILLI),
    "basemodel_update_latency": Word("load_mean_s", MILLI),
    "lora_update_latency": Word("load_mean_s", MILLI),
    "pipeline_update_latency": Word("load_mean_s", MILLI),
}
_DISTRIBUTIONS = {
    "GPU_UTIL_pct": Word("gpu_util_frac", PERCENT),
    "SM_ACTIVE_pct": Word("sm_active_frac", PERCENT),
    "CPU_pct": Word("cpu_util_frac", PERCENT),
    "MEM_pct": Word("host_memory_util_frac", PERCENT),
    "POWER_W": Word("power_w"),
    "GPU_TEMP_C": Word("temperature_c"),
    "MEM_TEMP_C": Word("memory_temperature_c"),
    "GPU_SERVER_W": Word("node_power_w"),
}


def is_long(columns: Iterable[str]) -> bool:
    """One row for each metric: a name and a value."""
    return {"metric_name", "value"} <= set(columns)


def take_long(collector: Collector, rows: Iterable[Row]) -> None:
    """Rows of DCGM's exporter written one metric at a time."""
    take_samples(collector, _long_samples(collector, rows))


def _long_samples(collector: Collector, rows: Iterable[Row]) -> Iterable[Sample]:
    for row, at_s, value in _timed(collector, rows, "timestamp"):
        labels = {key: str(cell) for key, cell in row.items() if cell and key != "labels_raw"}
        labels.setdefault("UUID", labels.get("uuid", ""))
        labels.setdefault("gpu", labels.get("gpu_id", ""))
        yield Sample(str(row["metric_name"]), labels, value, at_s)


def _timed(
    collector: Collector, rows: Iterable[Row], time: str
) -> Iterator[tuple[Row, float, float]]:
    """Rows with their second and value; torn ones are counted and left out."""
    for number, row in enumerate(rows, start=2):
        at_s, value = seconds(str(row.get(time) or ""), collector), _float(row.get("value"))
        if at_s is None or value is None:
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
        else:
            yield row, at_s, value


def file_word(name: str) -> Word | None:
    """What the only metric of a file is, by the file's name."""
    return next((word for start, word in _BY_FILE.items() if name.startswith(start)), None)


def take_values(collector: Collector, word: Word, rows: Iterable[Row]) -> None:
    """Rows of one metric: a time, a value, and a pod; no pod means the whole service."""
    n_whole = 0
    for row, at_s, value in _timed(collector, rows, "timestamp_anon"):
        pod = str(row.get("container_ip") or "")
        n_whole += not pod
        about = Subject(job=pod, service=str(row.get("request_type") or ""))
        collector.sample(collector.subject(about), word, at_s, value)
    if n_whole:
        collector.quirk("rows without a pod", "", "read as the whole service", n_cases=n_whole)


def is_distribution(columns: Iterable[str]) -> bool:
    """A cumulative distribution: a value and the share below it."""
    return {"source", "metric", "x", "cdf_pct"} <= set(columns)


def take_distribution(collector: Collector, rows: Iterable[Row]) -> None:
    """Each step of a distribution as one sample of equal weight; the order of time is lost."""
    collector.sampling = "mean"
    places: dict[tuple[str, str], int] = {}
    for row in rows:
        word = _DISTRIBUTIONS.get(str(row["metric"]))
        value = _float(row.get("x"))
        if word is None or value is None:
            collector.quirk("a distribution of something else", str(row["metric"]), "excluded")
            continue
        key = (str(row["source"]), word.metric)
        places[key] = places.get(key, -1) + 1
        subject = collector.subject(Subject(service=key[0]))
        collector.sample(subject, word, float(places[key]), value)
    collector.quirk("a distribution has no order of time", "", "places stand for seconds")


def is_job_list(columns: Iterable[str]) -> bool:
    """Jobs with a begin, a length and a number of accelerators."""
    return {"timestamp", "duration", "num_gpus"} <= set(columns)


def take_jobs(collector: Collector, rows: Iterable[Row]) -> None:
    """Jobs as allocations; the time is that of submission."""
    for number, row in enumerate(rows, start=2):
        at_s = seconds(str(row.get("timestamp") or ""), collector)
        length_s, n_gpus = _float(row.get("duration")), _float(row.get("num_gpus"))
        if at_s is None or length_s is None or n_gpus is None:
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        collector.allocation(
            Allocation(
                job=str(number - 1),
                team=str(row.get("cluster") or ""),
                n_accelerators=n_gpus,
                state="completed",
                submit_s=at_s,
                begin_s=at_s,
                end_s=at_s + length_s,
            )
        )


def _float(cell: object) -> float | None:
    try:
        value = float(str(cell))
    except ValueError:
        return None
    return value if not math.isnan(value) else None

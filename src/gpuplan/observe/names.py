"""Names that exporters and engines use, and what they mean in the common vocabulary.

`data/names.csv` has a line for each. A unit comes from the name or the schema, never from the size
of a value. The one exception is `is_ratio`: old names that some collectors fill with ratios.
"""

from typing import Literal, NamedTuple

from gpuplan.csv_rows import packaged_rows

PERCENT = 0.01
MIB = 2.0**20
MEGA = 1e6
MILLI = 1e-3
UNITS = {
    "": 1.0,
    "%": PERCENT,
    "MiB": MIB,
    "million": MEGA,
    "thousandth": MILLI,
    "per minute": 1.0 / 60.0,
}
# NVIDIA's (names up to DCGM 4.6, then those in base units of 4.7 [DCGM-fields]), other vendors' and
# the smaller ones [AMD-exporter] [Intel-XPUM] [nvidia-gpu-exporter], servers of models, nodes.
EXPORTERS = ("DCGM exporter", "device exporters", "engines", "hosts")
SIDES: tuple[Literal["over", "under"], ...] = ("over", "under")


class Word(NamedTuple):
    """One source name: the metric it becomes, its unit, and whether it only ever counts up."""

    metric: str
    scale: float = 1.0
    is_counter: bool = False


def words_of(*sources: str, kind: str | None = None) -> dict[str, Word]:
    """The names of these sources; those of one kind, or single values and counters."""
    kinds = ("", "counter") if kind is None else (kind,)
    return {
        row["name"]: Word(row["metric"], UNITS[row["unit"]], row["kind"] == "counter")
        for row in packaged_rows("gpuplan.observe", "data/names.csv")
        if row["source"] in sources and row["kind"] in kinds
    }


PROMETHEUS = words_of(*EXPORTERS)
HISTOGRAMS = {name: word.metric for name, word in words_of("engines", kind="histogram").items()}
# Two counters whose quotient is a metric: hits over queries.
QUOTIENTS: dict[str, tuple[str, Literal["over", "under"]]] = {
    name: (word.metric, side)
    for side in SIDES
    for name, word in words_of("engines", kind=side).items()
}
# Labels that name what a series is about; the first one found counts.
LABELS: dict[str, tuple[str, ...]] = {
    "node": ("Hostname", "hostname", "exported_instance", "node", "nodename", "instance", "host"),
    "device": ("gpu", "gpu_id", "GpuId", "gpu_index", "index", "minor_number", "device_id"),
    "uuid": ("UUID", "uuid", "gpu_uuid"),
    "model": ("modelName", "model_name_gpu", "card_series", "GpuDeviceName"),
    "team": ("exported_namespace", "namespace", "team", "account"),
    "job": ("exported_pod", "pod", "container_ip", "job_id", "pod_name"),
    "service": ("model_name", "model", "deployment", "engine_type"),
}
MIG_LABELS = ("GPU_I_PROFILE", "GPU_I_ID")

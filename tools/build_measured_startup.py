"""Builds the package's table of measured start-up phases from the published tables.

python tools/build_measured_startup.py SHARED_DATA
"""

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).parents[1] / "src/gpuplan/calibration/data/measured/startup.csv"
SHAPES = {  # layers, gigabytes of 16-bit weights
    "falcon-7b": (32, 14.4), "llama2-13b-hf": (40, 26.0), "llama2-7b-hf": (32, 13.5),
    "llama3-3b": (28, 6.4), "qwen-0.5b": (24, 1.2), "qwen-14b": (40, 28.3),
    "qwen-1.8b": (24, 3.7), "qwen-4b": (40, 7.9), "qwen-7b": (32, 15.4), "yi-6b": (32, 12.1),
    "yi-9b": (48, 17.7),
}  # fmt: skip
STORES = {"SSD": "network-disk", "S3": "object-store", "NVMe": "local-disk"}
LOADED_GB = {"Meta-Llama-3-8B (15 GB safetensors)": 16.06, "Llama-3.1-8B-Instruct": 16.06,
             "Qwen/Qwen3-32B": 65.5, "DeepSeek-R1-Distill-Qwen-32B": 65.5}  # fmt: skip
PHASES = {  # column -> phase
    "framework_bootstrap_s": "bootstrap", "dynamo_transform_time_s": "trace",
    "graph_compile_general_shape_s": "compile", "graph_compile_cached_s": "cached-compile",
    "kv_cache_profiling_s": "profile", "graph_capturing_s": "capture",
}  # fmt: skip
GRAPHS = {
    1024: 131,
    512: 67,
    256: 35,
    128: 19,
}  # captured up to this batch, as vLLM 0.10 spaces them
Out = dict[str, object]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def out(source: str, host: str, model: str, phase: str, units: float, seconds: float) -> Out:
    return {"source": source, "host": host, "model": model, "phase": phase,
            "units": f"{units:.6g}", "time_s": f"{seconds:.5g}"}  # fmt: skip


def vllm_rows(path: Path) -> Iterator[Out]:
    for row in read(path):
        name = row["model"].split(" ")[0]
        layers, gigabytes = SHAPES[name]
        host = row["gpu"].split(" (")[0]
        sizes = re.search(r"sizes (\d+)", row["variant"])
        limit = int(sizes.group(1)) if sizes else 512
        units = {"capture": layers * GRAPHS.get(limit, 0), "bootstrap": 1}
        for column, phase in PHASES.items():
            if row[column] and units.get(phase, layers):
                yield out("vllm-startup-profiler", host, name, phase, units.get(phase, layers),
                          float(row[column]))  # fmt: skip
        if name != "qwen-0.5b":  # too small to time
            is_cold = row["cache_state"].startswith("first")
            phase = "load-local-disk" if is_cold else "load-page-cache"
            yield out("vllm-startup-profiler", host, name, phase, gigabytes,
                      float(row["load_weights_s"]))  # fmt: skip


def loader_rows(path: Path) -> Iterator[Out]:
    """Plain safetensors, and streams up to the storage's own rate."""
    for row in read(path):
        if row["phase"] != "load weights to GPU" or row["loader"] in ("Tensorizer",):
            continue
        if row["loader"].startswith("ServerlessLLM"):
            continue
        store = next(kind for key, kind in STORES.items() if key in row["storage"])
        streams = int(row["concurrency"] or 1)
        if (store == "network-disk" and streams > 1) or (store == "object-store" and streams > 32):
            continue
        is_cached = row["cache_state"].startswith("Cached")
        phase = "load-page-cache" if is_cached else f"load-{store}"
        gigabytes = LOADED_GB[row["model"]] / streams
        yield out(row["source_repo"], row["gpu"].split(" (")[0], row["model"], phase, gigabytes,
                  float(row["time_s"]))  # fmt: skip


def split_rows(path: Path) -> Iterator[Out]:
    """Graphs captured by several ranks together."""
    for row in read(path):
        if row["model"].startswith("DeepSeek-R1 NVFP4") and "live" in row["phase"]:
            n_graphs = 23 if "23" in row["variant"] else 49
            yield out("tensorrt-llm", row["gpu"], "deepseek-r1", "split-capture", 61 * n_graphs,
                      float(row["time_s"]))  # fmt: skip
        if row["model"].startswith("Llama-70B FP8 TP8") and row["phase"] == "CUDA graph capture":
            yield out("redhat-vllm", "unknown", "llama-70b", "split-capture", 80 * 67,
                      float(row["time_s"]))  # fmt: skip


if __name__ == "__main__":
    shared = Path(sys.argv[1]) / "measured"
    cold = shared / "model_load_coldstart.csv"
    rows = [
        *vllm_rows(shared / "vllm_startup_breakdown.csv"), *loader_rows(cold), *split_rows(cold),
    ]  # fmt: skip
    with OUT.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{OUT.name}: {len(rows)} rows")

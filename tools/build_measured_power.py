"""Builds the package's tables of measured power from the published tables.

    python tools/build_measured_power.py SHARED_DATA

Utilizations are computed from the measured rate: power is judged apart from the rate's error.
"""

import csv
import sys
from pathlib import Path
from statistics import fmean

from fits.networks import read_network_rows

from gpuplan.errors import PlannerError
from gpuplan.studies.measured.inference import TASK_INPUT_TOKENS, find_accelerator_cached
from gpuplan.studies.measured.names import find_measured_model
from gpuplan.studies.power.serving import touched_params

OUT = Path(__file__).parents[1] / "src/gpuplan/calibration/data/measured"
TABLES = ("llm_inference.csv", "llm_inference_later.csv")
WIDTHS = {"fp8": 1.0, "int8": 1.0, "mxfp4": 0.53, "fp4": 0.56, "int4": 0.56}
DEFAULT_INPUT_TOKENS = 512.0
TDP_W = {"A40": 300, "V100": 250, "Quadro RTX 6000": 260, "P100": 250, "A100 PCIe": 300}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def write(name: str, rows: list[dict[str, object]]) -> None:
    with (OUT / name).open("w", newline="") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{name}: {len(rows)} rows")


def power_of(row: dict[str, str]) -> float | None:
    if row["measured_power_w"]:
        return float(row["measured_power_w"])
    if row["measured_energy_j_per_output_token"] and row["source"] == "mlenergy_v2":
        rate = float(row["measured_output_tokens_per_s"])
        return float(row["measured_energy_j_per_output_token"]) * rate
    return None


def work_of(row: dict[str, str]) -> str:
    """What keeps the accelerator waiting, if anything."""
    if row["source"] == "mlenergy_v2" or row["flag"]:
        return "host-bound"
    for kind in ("image-chat", "video-chat"):
        if kind in row["layout_note"]:
            return kind
    return "text"


def llm_row(row: dict[str, str], power_w: float) -> dict[str, object]:
    model = find_measured_model(row["model"])
    accelerator = find_accelerator_cached(row["accelerator"])
    n, batch = float(row["n_accelerators"]), float(row["batch"])
    rate, out = float(row["measured_output_tokens_per_s"]), float(row["output_tokens"])
    task = row["layout_note"].split("task=")[-1]
    given = row["input_tokens"]
    prompt = float(given) if given else TASK_INPUT_TOKENS.get(task, DEFAULT_INPUT_TOKENS)
    width = next((w for key, w in WIDTHS.items() if key in row["precision"].lower()), 2.0)
    steps_per_s = rate / batch
    traffic = n * accelerator.memory.bytes_per_s
    cache_bytes = model.kv_bytes_per_token() * batch * (prompt + out / 2)
    active = min(model.n_params - model.n_embedding_params, model.n_active_params)
    flop_per_s = 2 * active * rate * (1 + prompt / out)
    return {
        "id": row["id"],
        "source": row["source"],
        "accelerator": accelerator.id,
        "family": accelerator.family,
        "n_accelerators": int(n),
        "model": row["model"],
        "work": work_of(row),
        "compute_frac": f"{flop_per_s / n / accelerator.peak_flop_per_s['bf16']:.5g}",
        "weight_memory_frac": f"{steps_per_s * touched_params(model, batch) * width / traffic:.5g}",
        "other_memory_frac": f"{steps_per_s * cache_bytes / traffic:.5g}",
        "weight_bytes_per_param": width,
        "step_ms": f"{1e3 / steps_per_s:.5g}",
        "power_w": f"{power_w / n:.5g}",
    }


def llm_rows(path: Path) -> list[dict[str, object]]:
    rows = []
    for row in read(path):
        power_w = power_of(row)
        if power_w is None:
            continue
        try:
            rows.append(llm_row(row, power_w))
        except PlannerError as error:
            print(f"{row['id']}: {error}")
    return rows


def diffusion_rows() -> list[dict[str, object]]:
    """Draws of the measured denoisers; the work is that of the networks' own table."""
    cards = {"H100": ("h100-sxm", "Hopper"), "B200": ("b200-sxm", "Blackwell")}
    found = []
    for i, row in enumerate(read_network_rows("denoiser")):
        card, family = cards[row.device_name]
        flop_per_s = (row.work.flop + row.work.attention_flop) / row.time_s / row.n_devices
        found.append({
            "id": f"dif-{i:04}", "source": row.source, "accelerator": card, "family": family,
            "n_accelerators": row.n_devices, "model": row.model, "work": "diffusion",
            "compute_frac": f"{flop_per_s / row.device.flop_per_s:.5g}",
            "weight_memory_frac": 0, "other_memory_frac": 0, "weight_bytes_per_param": 2.0,
            "step_ms": f"{1e3 * row.time_s / row.work.n_kernels:.5g}",
            "power_w": row.power_w,
        })  # fmt: skip
    return found


def cap_rows(path: Path) -> list[dict[str, object]]:
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in read(path):
        key = ("study", "gpu", "workload", "batch_size", "optimizer")
        groups.setdefault(tuple(row[k] for k in key), []).append(row)
    return [out for key, rows in groups.items() for out in cap_group(key, rows)]


def cap_group(key: tuple[str, ...], rows: list[dict[str, str]]) -> list[dict[str, object]]:
    """Each point relative to the same run at the full limit."""

    def cap(row: dict[str, str]) -> float:
        return fmean(float(part) for part in row["power_limit_w"].split())

    def seconds(row: dict[str, str]) -> float:
        return float(row["time_per_epoch_s"] or row["iteration_time_s"])

    def watts(row: dict[str, str]) -> float:
        if row["average_power_w"]:
            return float(row["average_power_w"])
        return float(row["iteration_energy_j"]) / seconds(row) / float(row["num_gpus"])

    top = max(cap(row) for row in rows)
    if top < 0.9 * TDP_W[key[1]]:
        return []
    full = [row for row in rows if cap(row) == top]
    return [
        {
            "source": row["source_repo"] + ":" + row["source_path"].rsplit("/", 1)[-1],
            "gpu": key[1],
            "workload": f"{key[2].split(' (')[0]} b{key[3]}",
            "is_large_model": int("iteration" in key[2]),
            "limit_w": top,
            "cap_w": cap(row),
            "uncapped_w": f"{fmean(watts(r) for r in full):.5g}",
            "power_w": f"{watts(row):.5g}",
            "slowdown": f"{seconds(row) / fmean(seconds(r) for r in full):.5g}",
        }
        for row in rows
        if cap(row) < top
    ]


if __name__ == "__main__":
    shared = Path(sys.argv[1]) / "measured"
    served = [row for name in TABLES for row in llm_rows(shared / name)]
    write("power_load.csv", [*served, *diffusion_rows()])
    write("power_caps.csv", cap_rows(shared / "power_limit_sweeps_training.csv"))

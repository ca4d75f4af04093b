"""Builds the package's table of measured networks from the published tables.

python tools/build_measured_networks.py SHARED_DATA
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from gpuplan.calibration.networks.stored import denoiser_shape
from gpuplan.domain.model.other import NetworkWork
from gpuplan.errors import PlannerError
from gpuplan.performance import other_networks as o
from gpuplan.studies.measured.inference import find_accelerator_cached

OUT = Path(__file__).parents[1] / "src/gpuplan/calibration/data/measured"
# One run per board and software: the newest; others repeat it within a few per cent.
TIMM_RUNS = {
    ("RTX 3090", "pt240"), ("RTX 4090", "pt291"), ("RTX 4090 nhwc", "pt240"),
    ("RTX PRO 6000 Blackwell Max-Q", "pt291"), ("i9_10940x", "pt240"),
}  # fmt: skip
Row = dict[str, str]
Out = dict[str, object]


def read(path: Path) -> list[Row]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def figures(work: NetworkWork) -> Out:
    return {
        "gflop": f"{work.flop / 1e9:.5g}",
        "attention_gflop": f"{work.attention_flop / 1e9:.5g}",
        "activation_mb": f"{work.activation_bytes / 1e6:.5g}",
        "weight_mb": f"{work.weight_bytes / 1e6:.5g}",
        "n_kernels": f"{work.n_kernels:.5g}",
    }


def line(
    names: tuple[str, str, str, str, str], work: NetworkWork, time_s: float, *,
    peak_ratio: float = 1.0, n_devices: int = 1, power_w: str = "",
) -> Out:  # fmt: skip
    keys = ("kind", "source", "model", "stack", "device")
    return {
        **dict(zip(keys, names, strict=True)), "peak_ratio": f"{peak_ratio:g}",
        "n_devices": n_devices, **figures(work), "time_ms": f"{time_s * 1e3:.5g}",
        "power_w": power_w,
    }  # fmt: skip


def timm_rows(path: Path) -> Iterator[Out]:
    for row in read(path):
        key = row["device"] + (" nhwc" if row["memory_format"] == "nhwc" else "")
        key = key if (key, row["pytorch"]) in TIMM_RUNS else row["device"]
        is_cpu = row["device"].startswith("i9")
        if (key, row["pytorch"]) not in TIMM_RUNS or row["precision"] not in ("amp", "fp32"):
            continue
        if not row["gmacs"] or float(row["gmacs"]) <= 0 or float(row["macts_m"]) <= 0:
            continue
        mode = "compiled" if row["torch_compile"] == "True" else "eager"
        batch = int(row["batch_size"])
        kind = "vision-cpu" if is_cpu else "vision"
        names = (kind, "timm", row["model"], f"{mode}-{row['memory_format']}", row["device"])
        yield line(names, vision(row, row, batch), batch / float(row["infer_samples_per_s"]))


def vision(shape: Row, row: Row, batch: int) -> NetworkWork:
    return o.vision_work(
        float(shape["gmacs"]) * 1e9, float(shape["macts_m"]) * 1e6,
        float(row["param_count_m"]) * 1e6, batch=batch,
        bytes_per_value=4.0 if row["precision"] == "fp32" else 2.0,
    )  # fmt: skip


def shape_rows(path: Path) -> Iterator[Out]:
    seen = set()
    for row in read(path):
        key = (row["model"].split(".")[0], row["img_size"])
        if (
            key in seen
            or not row["gmacs"]
            or float(row["gmacs"]) <= 0
            or float(row["macts_m"]) <= 0
        ):
            continue
        seen.add(key)
        yield {"model": key[0], "image_px": key[1], "gmacs": row["gmacs"],
               "macts_m": row["macts_m"], "params_m": row["param_count_m"]}  # fmt: skip


def timm_training_rows(path: Path, inference: Path) -> Iterator[Out]:
    """Training tables print no work: it is that of the same model and size at inference."""
    shapes = {
        (row["model"].split(".")[0], row["img_size"]): row
        for row in read(inference)
        if row["gmacs"] and float(row["gmacs"]) > 0 and float(row["macts_m"]) > 0
    }
    for row in read(path):
        shape = shapes.get((row["model"].split(".")[0], row["img_size"]))
        if shape is None:
            continue
        batch = int(row["batch_size"])
        stack = f"eager-{row['memory_format']}"
        names = ("vision-training", "timm", row["model"], stack, row["device"])
        yield line(names, vision(shape, row, batch), batch / float(row["train_samples_per_s"]))


def bert_rows(path: Path) -> Iterator[Out]:
    for row in read(path):
        n_layers, hidden = (12, 768) if "base" in row["model"] else (24, 1024)
        is_int8 = row["precision"].startswith("INT8")
        stack = "sparse" if "sparse" in row["precision"] else "int8" if is_int8 else "fp16"
        work = o.encoder_work(
            n_layers, hidden, n_tokens=int(row["seq_len"]), batch=int(row["batch"]),
            bytes_per_value=1.0 if is_int8 else 2.0,
        )  # fmt: skip
        names = ("encoder", "tensorrt-bert", row["model"], f"tensorrt-{stack}", row["gpu"])
        seconds = float(row["latency_avg_ms"]) / 1e3
        yield line(names, work, seconds, peak_ratio=2.0 if is_int8 else 1.0)


def embedding_rows(path: Path) -> Iterator[Out]:
    for row in read(path):
        if row["device"] not in ("NVIDIA L4", "AMD MI210"):  # what the others are is not said
            continue
        n_sentences = int(row["sentences_per_request"])
        n_tokens = int(row["tokens_per_request"]) // n_sentences
        stack = "served-eager" if "sentence-transformers" in row["backend"] else "served-fused"
        work = o.encoder_work(24, 1024, n_tokens=n_tokens, batch=n_sentences)
        names = ("encoder", "infinity", row["model"], stack, row["device"])
        yield line(names, work, float(row["time_s_for_10_requests"]) / 10)


def diffusion_rows(path: Path) -> Iterator[Out]:
    for row in read(path):
        name = row["model_id"].split("/")[-1].removesuffix("-Diffusers").removesuffix("_diffusers")
        shape = denoiser_shape(name)
        tokens = o.latent_tokens(
            shape, int(row["height"]), width_px=int(row["width"] or row["height"]),
            n_frames=int(row["num_frames"] or 1),
        )  # fmt: skip
        work = o.denoiser_work(
            shape, tokens, n_steps=int(row["inference_steps"]), batch=int(row["batch_size"])
        )
        n = int(row["num_gpus"])
        names = ("denoiser", "mlenergy_v3_diffusion", name, "xdit", row["gpu_model"])
        power = f"{float(row['avg_power_w_all_gpus']) / n:.5g}"
        yield line(names, work, float(row["batch_latency_s"]), n_devices=n, power_w=power)


BENCHMARKS = ("resnet", "retinanet", "bert-99", "bert-99.9", "3d-unet-99", "3d-unet-99.9",
              "dlrm-99", "dlrm-99.9", "dlrm-v2-99", "dlrm-v2-99.9", "rnnt",
              "stable-diffusion-xl")  # fmt: skip
# Times real time on the Open ASR Leaderboard's board, as model cards print them.
PUBLISHED = {"parakeet-tdt-0.6b-v2": 3380, "canary-1b-flash": 1000}
WHISPER_BOARDS = {"A100-80GB": "a100-sxm-80gb"}


def benchmark_rows(path: Path, whisper: Path) -> Iterator[Out]:
    """Median rate of one accelerator, Offline, unrestricted power; speech in audio seconds."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in read(path):
        name = row["model_benchmark"]
        if name not in BENCHMARKS or row["scenario"] != "Offline" or row["power_result"]:
            continue
        if "MIG" in row["accelerator"] or not row["result_per_accelerator_derived"]:
            continue
        try:
            card = find_accelerator_cached(row["accelerator"]).id
        except PlannerError:
            continue
        rates.setdefault((name, card), []).append(float(row["result_per_accelerator_derived"]))
    for (name, card), found in sorted(rates.items()):
        yield {
            "benchmark": name, "accelerator": card, "source": "mlperf-inference-closed",
            "n_runs": len(found), "rate_per_s": f"{median(found):.6g}",
        }  # fmt: skip
    for row in read(whisper):
        if row["device"] in WHISPER_BOARDS and row["rtf_x_realtime_derived"]:
            yield {
                "benchmark": "whisper-" + row["implementation"].replace("`", ""),
                "accelerator": WHISPER_BOARDS[row["device"]], "source": row["source_repo"],
                "n_runs": 1, "rate_per_s": row["rtf_x_realtime_derived"],
            }  # fmt: skip

    for name, rate in PUBLISHED.items():
        yield {
            "benchmark": f"{name} (NeMo) (batching [128])", "accelerator": "a100-sxm-80gb",
            "source": f"open-asr-leaderboard: model card of nvidia/{name}", "n_runs": 1,
            "rate_per_s": rate,
        }  # fmt: skip


def write(path: Path, rows: list[Out]) -> None:
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{path.name}: {len(rows)} rows")


if __name__ == "__main__":
    shared = Path(sys.argv[1]) / "measured"
    rows = [
        *timm_rows(shared / "timm_infer.csv"),
        *timm_training_rows(shared / "timm_train.csv", shared / "timm_infer.csv"),
        *bert_rows(shared / "tensorrt_bert_encoder.csv"),
        *embedding_rows(shared / "embedding_published_misc.csv"),
        *diffusion_rows(shared / "diffusion_mlenergy.csv"),
    ]
    write(OUT / "networks.csv", rows)
    write(OUT / "vision_shapes.csv", list(shape_rows(shared / "timm_infer.csv")))
    misc = shared / "whisper_published_misc.csv"
    benchmarks = list(benchmark_rows(shared / "mlperf_inference_closed.csv", misc))
    write(OUT / "network_benchmarks.csv", benchmarks)

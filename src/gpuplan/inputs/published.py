"""Tables of studies in their own columns, in; rows of serving and training tables, out."""

import re
from collections.abc import Mapping, Sequence

from gpuplan.units import GB, GIB, MS

Row = Mapping[str, str]
# Prompts and outputs of one batch, timed apart [Splitwise2024].
PHASE_COLUMNS = frozenset(
    {"hardware", "tensor_parallel", "prompt_size", "token_size", "prompt_time_ms", "token_time_ms"}
)
# The first token of one batch [TensorRT-LLM-perf-overview].
FIRST_TOKEN_COLUMNS = frozenset({"isl", "first_token_latency_ms", "batch_size", "gpu", "model"})

# Training by number of nodes [NeMo-launcher], and by slices of a pod [MaxText]; neither states
# batches.
SCALING_COLUMNS = frozenset({"family", "model", "n_gpus", "gpu", "tokens_per_s_per_gpu"})
POD_COLUMNS = frozenset({"model_params", "accelerator", "n_chips", "mfu_pct"})
# Peaks of memory and rates of fine-tuning, by method [torchtune, litgpt, unsloth].
FINE_TUNING_COLUMNS = frozenset({"model", "method", "gpu", "n_gpus", "peak_mem_gb"})
NUMBER = re.compile(r"\d+(\.\d+)?")
METHODS = ("qlora", "lora", "full")  # the first that a method's name holds
UNSTATED = {"seq_len": "", "global_batch": "", "micro_batch": ""}


def scaling_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Rates of training on more and more nodes."""
    return [
        {
            **UNSTATED,
            **_named(row, at, "scaling"),
            "model": f"{row['family']} {row['model']}".strip(),
            "framework": row.get("framework", ""),
            "accelerator": row["gpu"].partition(" (")[0],
            "n_accelerators": row["n_gpus"],
            "devices_per_node": row.get("gpus_per_node", ""),
            "date": row.get("first_seen", ""),
            "measured_tokens_per_s_per_accelerator": row["tokens_per_s_per_gpu"],
        }
        for at, row in enumerate(rows)
    ]


def pod_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Rates and shares of peak of training on slices of a pod."""
    return [
        {
            **UNSTATED,
            **_named({**row, "model": row["model_params"]}, at, "pod"),
            "framework": row.get("framework", ""),
            # Names of slices count cores or chips behind the generation: v5p-256.
            "accelerator": f"TPU {re.split('[- (]', row['accelerator'])[0]}",
            "n_accelerators": row["n_chips"],
            "precision": row.get("precision", ""),
            "seq_len": row.get("seq_len", ""),
            "date": row.get("date", ""),
            "measured_mfu_pct": row["mfu_pct"],
            "measured_tokens_per_s_per_accelerator": row.get("tokens_per_s_per_device", ""),
        }
        for at, row in enumerate(rows)
    ]


def fine_tuning_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Peaks of the fullest accelerator, and rates of all of them, by method."""
    return [
        {
            **UNSTATED,
            **_named(row, at, "fine-tuning"),
            "framework": row.get("project", ""),
            "accelerator": row["gpu"],
            "n_accelerators": row["n_gpus"],
            "task": _method(row),
            "seq_len": row.get("seq_len", ""),
            "micro_batch": row.get("micro_batch", ""),
            "lora_rank": row.get("lora_rank", ""),
            "date": row.get("date", ""),
            "measured_memory_gib": _in_gib(row),
            "measured_tokens_per_s_per_accelerator": _each(row.get("tokens_per_s"), row["n_gpus"]),
        }
        for at, row in enumerate(rows)
    ]


def _in_gib(row: Row) -> str:
    """Plain digits alone: `OOM` says nothing of how much it would have been."""
    text, is_binary = row["peak_mem_gb"], "gib" in row.get("mem_unit", "").lower()
    return text if is_binary or not NUMBER.fullmatch(text) else f"{float(text) * GB / GIB:.6g}"


def _each(total: str | None, n: str) -> str:
    return f"{float(total) / float(n or 1):.6g}" if total else ""


def _method(row: Row) -> str:
    """What is trained; 4-bit weights beside adapters are QLoRA, other methods keep their name.

    A star refers to a footnote: the optimizer or its states are not the usual ones.
    """
    text = row["method"].lower()
    is_usual = "*" not in text
    found = next((name for name in METHODS if is_usual and name in text), row["method"])
    is_narrow = "nf4" in row.get("quantization", "").lower()
    return "qlora" if found == "lora" and is_narrow else found


def phase_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """One batch from its prompts to its last token; the study ran vLLM of 2023 in 16 bits."""
    return [
        {
            **_named(row, at, "phases"),
            "accelerator": row["hardware"],
            "n_accelerators": row["tensor_parallel"],
            "tp": row["tensor_parallel"],
            "precision": "fp16",
            "engine": "vLLM",
            "engine_version": "2023",
            "regime": "static_batch",
            "batch": row["batch_size"],
            "input_tokens": row["prompt_size"],
            "output_tokens": row["token_size"],
            "measured_ttft_mean_ms": row["prompt_time_ms"],
            "measured_tpot_mean_ms": row["token_time_ms"],
            "measured_e2e_s": _seconds(row.get("e2e_time_ms", "")),
        }
        for at, row in enumerate(rows)
    ]


def first_token_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Prompts alone; names as their compilers made them unambiguous, where they did."""
    return [
        {
            **_named(row, at, "first-token"),
            "model": row.get("model_norm") or row["model"],
            "accelerator": row.get("gpu_norm") or row["gpu"],
            "n_accelerators": row.get("tp") or "1",
            "tp": row.get("tp") or "1",
            "precision": row.get("precision", ""),
            "engine": row.get("framework", ""),
            "engine_version": row.get("framework_version", ""),
            "regime": "single request prefill",
            "batch": row["batch_size"],
            "input_tokens": row["isl"],
            "output_tokens": "1",
            "measured_ttft_mean_ms": row["first_token_latency_ms"],
        }
        for at, row in enumerate(rows)
    ]


def _named(row: Row, at: int, kind: str) -> dict[str, str]:
    return {
        "id": row.get("id") or f"{kind}-{at:04d}",
        "source": row.get("source_repo", "") or kind,
        "model": row["model"],
    }


def _seconds(milliseconds: str) -> str:
    return f"{float(milliseconds) * MS:.6g}" if milliseconds else ""

"""Build the package's table of fine-tuning throughput from the published one.

Left out, because what sets the pace is not in the table: paged optimizers, offload to the host,
several accelerators on a bus without peer-to-peer, and runs whose sequence lengths nobody states.
"""

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path

from refit_training import COLUMNS, DATA

# Alpaca samples are about this long; launches, not tokens, set the pace of these runs.
ALPACA_TOKENS = 120
LITGPT = {
    "1.3B phi-1.5": "phi-1.5", "3B StableLM Alpha": "stablelm-alpha-3b", "7B Llama 2": "Llama-2-7B",
}  # fmt: skip


def task_of(method: str) -> str:
    lower = method.lower()
    return next((name for name in ("qlora", "lora", "full") if name in lower), "")


def torchtune(row: Mapping[str, str]) -> dict[str, object] | None:
    n = int(row["n_gpus"])
    is_card = "4090" in row["gpu"]
    is_told = not (is_card and n > 1) and "*" not in row["method"].replace("QLoRA **", "")
    if not is_told or "A6000" in row["gpu"] or "offload" in row["other"].lower():
        return None
    model = row["model"].replace("Llama2", "Llama-2").replace("Llama 3.1 ", "Llama-3.1-")
    return {
        "source": "torchtune", "framework": "torchtune", "model": model, "n_accelerators": n,
        "accelerator": "RTX 4090" if is_card else row["gpu"], "seq_len": row["seq_len"],
        "micro_batch": row["micro_batch"], "global_batch": int(row["micro_batch"]) * n,
        "sharding": "fsdp" if n > 1 else "", "recompute": "full", "lora_rank": 8,
        "note": "compile yes" if "compile" in row["other"] else "",
        "measured_tokens_per_s_per_accelerator": round(float(row["tokens_per_s"]) / n, 1),
    }  # fmt: skip


def litgpt(row: Mapping[str, str]) -> dict[str, object] | None:
    if row["model"] not in LITGPT or row["n_gpus"] != "1" or "1k" not in row["time_unit"]:
        return None
    quantized = "nf4" in row["quantization"]
    batch = row["micro_batch"]
    return {
        "source": "litgpt", "framework": "litgpt", "model": LITGPT[row["model"]],
        "n_accelerators": 1, "accelerator": row["gpu"], "seq_len": ALPACA_TOKENS,
        "micro_batch": batch, "global_batch": batch, "recompute": "none", "lora_rank": 8,
        "task": "qlora" if quantized else "lora",
        "measured_step_s": round(float(row["time_value"]) * 60 / 1000, 5),
        "note": "sequence length assumed",
    }  # fmt: skip


READERS = {"torchtune": torchtune, "litgpt": litgpt}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    given = parser.parse_args()
    with given.table.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["measured"] == "yes"]
    found = []
    for at, row in enumerate(rows):
        task, reader = task_of(row["method"]), READERS.get(row["project"])
        if not task or reader is None or not (row["tokens_per_s"] or row["time_value"]):
            continue
        read = reader(row)
        if read is not None:
            found.append({"id": f"ft-{at:04d}", "date": row["date"], "precision": "bf16",
                          "task": task, **read})  # fmt: skip
    out = DATA / "measured" / "llm_finetune.csv"
    with out.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, [*COLUMNS, "lora_rank"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    print(f"{out.name}: {len(found)} rows")


if __name__ == "__main__":
    main()

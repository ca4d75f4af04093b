"""Rebuild `models.jsonl`, the figures of published models, from the raw configurations.

Of each configuration only what the reader reads is kept; a quantization block becomes the stored
format of each part. Run: python tools/build_models.py RAW_FOLDER [OUT_FILE]
"""

import csv
import json
import sys
from pathlib import Path

from build_model_defaults import names_read

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.architectures.shape import class_defaults
from gpuplan.catalog.models import RECALLED
from gpuplan.domain.model.network import Checkpoint
from gpuplan.errors import PlannerError

OUT = Path(__file__).resolve().parent.parent / "src/gpuplan/catalog/data/models.jsonl"
BY_HAND = Path(__file__).resolve().parent / "models_by_hand.jsonl"
KEEP = {"model_type", "dtype", "torch_dtype", "_class_name", "mlp_class"}
# The SigLIP tower that Gemma 3 from 4B up is published with; the derived rows leave it out.
GEMMA3_TOWER = {
    "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
    "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 896, "patch_size": 14,
    "vision_use_head": False,
}  # fmt: skip
# The tower of Llama 4, published beside the text network that the source copied.
LLAMA4_TOWER = {
    "model_type": "llama4_vision_model", "hidden_size": 1408, "intermediate_size": 5632,
    "num_hidden_layers": 34, "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
    "projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim": 4096,
}  # fmt: skip
# The tower of Step 3.7, likewise [transformers step3p7 defaults].
STEP_TOWER = {
    "model_type": "step3p7_vision", "hidden_size": 1536, "intermediate_size": 8960,
    "num_hidden_layers": 47, "num_attention_heads": 16, "image_size": 728, "patch_size": 14,
}  # fmt: skip
# The source gives GPT-3's shape under BLOOM's name; these are the published figures [BLOOM].
# Platypus2-70B is Llama-2-70B, with its 8 KV heads; Qwen1.5-1.8B has a head of its own.
CORRECTED = {
    "garage-bAInd/Platypus2-70B": {"num_key_value_heads": 8},
    "Qwen/Qwen1.5-1.8B-Chat": {"tie_word_embeddings": False},
    "bigscience/bloom": {
        "model_type": "bloom", "num_layers": 70, "n_head": 112, "hidden_dim": 14336,
        "ffn_embed_dim": 57344, "tie_word_embeddings": True,
    },
}  # fmt: skip


def reduced(values: dict[str, object], names: set[str]) -> dict[str, object]:
    """What the reader reads; an explicit null is kept where it overrides a default."""
    usual = class_defaults(str(values.get("model_type")))
    is_derived = str(values.get("model_type")).startswith("(")
    kept: dict[str, object] = {}
    for name, value in sorted(values.items()):
        if name == "quantization_config" or name not in names | KEEP:
            continue
        if isinstance(value, dict):
            kept[name] = reduced(value, names)
        elif value is not None or usual.get(name) is not None or is_derived:
            kept[name] = value
    return kept


def parts_block(checkpoint: Checkpoint) -> dict[str, object] | None:
    """The stored formats by part, as the reader takes them back."""
    if checkpoint.quantized is None and checkpoint.cache is None:
        return None
    formats = {part: checkpoint.quantized.name for part in checkpoint.parts if checkpoint.quantized}
    formats |= {part: form.name for part, form in checkpoint.others}
    block: dict[str, object] = {"quant_method": "parts", "parts": formats}
    if checkpoint.cache is not None:
        block["kv_cache_quant_algo"] = checkpoint.cache.name
    return block


def completed(model_id: str, raw: dict[str, object]) -> dict[str, object]:
    """The configuration with what is published and what its source left out or mistook."""
    if model_id.startswith("google/gemma-3-") and raw.get("model_type") == "(litgpt)":
        return {"vision_config": GEMMA3_TOWER, **raw}
    if model_id.startswith("stepfun-ai/Step-3.7-Flash"):
        return {"vision_config": STEP_TOWER, **raw}
    if model_id.startswith("meta-llama/Llama-4-"):
        return {"vision_config": LLAMA4_TOWER, **raw}
    return {**raw, **CORRECTED.get(model_id, {})}


def entry(row: dict[str, str], folder: Path, names: set[str]) -> dict[str, object]:
    """One line of the table."""
    raw = json.loads((folder / row["file"]).read_text("utf-8"))
    raw = completed(row["model_id"], raw)
    config = reduced(raw, names)
    model = read_model(raw, name=row["model_id"])
    block = parts_block(model.checkpoint)
    if block is not None:
        config["quantization_config"] = block
    back = read_model(config, name=row["model_id"])
    if (back.embedding, back.stacks, back.checkpoint) != (
        model.embedding, model.stacks, model.checkpoint,
    ):  # fmt: skip
        raise SystemExit(f"{row['model_id']}: the reduced configuration reads differently")
    line = {"id": row["model_id"], "config": config, "source": row["source"]}
    line |= {"kind": row["kind"], "licence": row["container_licence"]}
    return line | ({"note": row["note"]} if row["note"] else {})


def rows(folder: Path) -> list[dict[str, str]]:
    """Every configuration that the manifest names."""
    with (folder / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def more(folder: Path, known: set[str], names: set[str]) -> list[dict[str, object]]:
    """Models of the structural table that the manifest does not name, one line each."""
    with (folder / "litgpt_configs.csv").open(encoding="utf-8", newline="") as file:
        found = {f"{row['hf_org']}/{row['hf_name']}": row for row in csv.DictReader(file)}
    lines = []
    for model_id, row in found.items():
        if model_id.lower() not in known:
            config = reduced(completed(model_id, structural(row)), names)
            read_model(config, name=model_id)
            line = {"id": model_id, "config": config, "source": row["source"]}
            line |= {"kind": "derived from litgpt", "licence": "Apache-2.0 repo"}
            lines.append(line)
    return lines


def structural(row: dict[str, str]) -> dict[str, object]:
    """A row of the structural table in the field names of configurations."""
    figures = {name: int(row[old]) for name, old in STRUCTURE.items() if row[old]}
    if int(row["n_expert"] or 0):
        figures["num_experts_per_tok"] = int(row["n_expert_per_token"])
        figures["num_local_experts"] = int(row["n_expert"])
    window = int(row["sliding_window"]) if row["sliding_window"] else None
    return {
        "model_type": "(litgpt)",
        "mlp_class": row["mlp"],
        "attention_bias": row["bias"] == "True",
        "sliding_window": window,
        "tie_word_embeddings": None,
        **figures,
    }


STRUCTURE = {
    "hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
    "num_key_value_heads": "n_kv", "head_dim": "head_size", "intermediate_size": "intermediate",
    "moe_intermediate_size": "moe_intermediate", "vocab_size": "padded_vocab",
    "max_position_embeddings": "block_size",
}  # fmt: skip


def by_hand(known: set[str], names: set[str]) -> list[dict[str, object]]:
    """Models whose figures were entered by hand, each held to its published count."""
    lines = []
    for text in BY_HAND.read_text("utf-8").splitlines():
        row = json.loads(text)
        count = read_model(row["config"], name=row["id"]).n_params
        if abs(count / (row["params_b"] * 1e9) - 1) > 0.005:
            raise SystemExit(f"{row['id']}: {count:,} parameters, published {row['params_b']} B")
        if row["id"].lower() not in known:
            parts = {k: v for k, v in row["config"].items() if k == "quantization_config"}
            line = {"id": row["id"], "config": reduced(row["config"], names) | parts}
            line |= {
                "source": row.get("source", "general knowledge of " + row["id"]),
                "kind": row.get("kind", RECALLED),
                "licence": row.get("licence", "see the model's own"),
            }
            lines.append(line | ({"note": row["note"]} if "note" in row else {}))
    return lines


def main(folder: Path, out: Path) -> None:
    names, lines, known = names_read(), [], set[str]()
    for row in rows(folder):
        try:
            lines.append(json.dumps(entry(row, folder, names), separators=(",", ":")))
            known.add(row["model_id"].lower())
        except PlannerError as error:
            print(f"left out: {row['model_id']}: {error}")
    for line in more(folder, known, names):
        lines.append(json.dumps(line, separators=(",", ":")))
        known.add(str(line["id"]).lower())
    lines += [json.dumps(line, separators=(",", ":")) for line in by_hand(known, names)]
    out.write_text("\n".join(sorted(lines, key=str.lower)) + "\n", "utf-8")
    print(f"{len(lines)} models, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else OUT)

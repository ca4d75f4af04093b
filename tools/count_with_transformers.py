"""Count parameters with `transformers` and `diffusers`, the oracle of our reader.

Reads and rewrites tests/unit/catalog/architectures/oracle_counts.csv: each row is a configuration
and the number of parameters that the library builds from it, without storage. A row without a
configuration is a catalog model of that name. To add a case, add a row with an empty count.
Run with torch, transformers and diffusers installed: python tools/count_with_transformers.py
"""

import csv
import json
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/unit/catalog/architectures/oracle_counts.csv"
CATALOG = ROOT / "src/gpuplan/catalog/data/models.jsonl"
COLUMNS = ["name", "config", "count", "library"]
# A correction of the router is stored with the weights but is no parameter to the library.
STORED_BUFFERS = ("e_score_correction", "correction_bias")
# Published as bare encoders: no language-modelling head is counted.
BARE = (
    "bert", "roberta", "xlm-roberta", "distilbert", "modernbert", "electra", "mpnet", "deberta",
    "deberta-v2", "albert", "camembert", "nomic_bert", "eurobert", "ernie", "gte",
    "roberta-prelayernorm", "megatron-bert",
)  # fmt: skip


def build(config: dict[str, Any]) -> Any:
    """The network on the meta device."""
    import diffusers  # noqa: PLC0415
    import torch  # noqa: PLC0415
    import transformers as hf  # noqa: PLC0415
    from transformers.models.auto import modeling_auto as auto  # noqa: PLC0415

    if "_class_name" in config:
        values = {k: v for k, v in config.items() if not k.startswith("_")}
        with torch.device("meta"):
            return getattr(diffusers, config["_class_name"])(**values)
    kind = config["model_type"]
    classes = [
        (auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, hf.AutoModelForSeq2SeqLM),
        (auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES, hf.AutoModelForSpeechSeq2Seq),
        (auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, hf.AutoModelForImageTextToText),
        (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, hf.AutoModelForCausalLM),
    ]
    chosen = [cls for names, cls in classes if kind in names and kind not in BARE]
    values = hf.AutoConfig.for_model(**padded(config))
    with torch.device("meta"):
        return (chosen or [hf.AutoModel])[0].from_config(values)


def padded(config: dict[str, Any]) -> dict[str, Any]:
    """A padding token inside the vocabulary, so that small vocabularies can be built."""
    kept = {k: v for k, v in config.items() if k not in ("quantization_config", "dtype")}
    if isinstance(kept.get("text_config"), dict):
        text = {k: v for k, v in kept["text_config"].items() if k != "quantization_config"}
        return {**kept, "text_config": {"pad_token_id": 0, **text}}
    return {"pad_token_id": 0, **kept} if kept.get("vocab_size", 10**6) < 10**5 else kept


# Where the library builds something else than was published: it ties tables that the published
# weights keep apart, and gives memory to experts that do nothing.
DIFFERENT = (
    "google/flan-t5-base", "google/flan-t5-large", "google/flan-t5-xl", "google/flan-t5-xxl",
    "meituan-longcat/LongCat-Flash-Chat",
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
)  # fmt: skip
# Types that the library knows under another name, and fields of reduced configurations.
TYPES = {
    "Dream": "qwen2", "deepseek_ref": "deepseek_v4", "kimi_k2": "deepseek_v3", "mimo": "qwen2",
    "phi-msft": "phi", "sdar": "qwen3",
}  # fmt: skip
FIELDS = {
    "ffn_embed_dim": "intermediate_size", "hidden_dim": "hidden_size",
    "max_seq_len": "max_position_embeddings", "n_embd": "hidden_size",
    "n_head": "num_attention_heads", "n_inner": "intermediate_size",
    "n_layer": "num_hidden_layers", "n_positions": "max_position_embeddings",
    "num_layers": "num_hidden_layers",
}  # fmt: skip


def as_known(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """A catalog configuration in the library's own type and field names."""
    from gpuplan.catalog.models import find_model  # noqa: PLC0415

    kind = config.get("model_type")
    if kind == "ministral3" and "text_config" in config:
        return {**config, "model_type": "mistral3"}
    is_native = kind is not None and not kind.startswith("(") and "num_layers" not in config
    if "_class_name" in config or (is_native and kind not in TYPES):
        return config
    model = find_model(name)
    known = TYPES.get(model.architecture, model.architecture)
    values = {k: v for k, v in config.items() if v is not None and k != "mlp_class"}
    values = {"tie_word_embeddings": model.embedding.is_tied, **values, "model_type": known}
    if known != "deepseek_v4":
        values = {FIELDS.get(k, k): v for k, v in values.items()}
    if known == "opt":
        values |= {
            "ffn_dim": values["intermediate_size"],
            "word_embed_proj_dim": values["hidden_size"],
        }
    if known == "falcon":
        values.pop("head_dim")
    if known == "falcon" and 1 < values["num_key_value_heads"] < values["num_attention_heads"]:
        values |= {"new_decoder_architecture": True, "num_kv_heads": values["num_key_value_heads"]}
    if known == "phi":
        values.setdefault("intermediate_size", 4 * values["hidden_size"])
    if known == "gpt_neo":
        values |= {
            "num_heads": values.pop("num_attention_heads"),
            "num_layers": values["num_hidden_layers"],
        }
        values["attention_types"] = [[["global", "local"], values["num_layers"] // 2]]
    if "vision_config" in values:
        vision = values.pop("vision_config")
        values = {"model_type": "gemma3", "text_config": values, "vision_config": vision}
    return values


def n_params(network: Any) -> int:
    """Parameters, shared ones once, and the buffers that are stored with them."""
    buffers = [b for n, b in network.named_buffers() if any(word in n for word in STORED_BUFFERS)]
    return sum(p.numel() for p in network.parameters()) + sum(b.numel() for b in buffers)


def recount(row: dict[str, str], catalog: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The row with today's count."""
    import diffusers  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    given = json.loads(row["config"]) if row["config"] else catalog[row["name"]]
    config = given if row["config"] else as_known(row["name"], given)
    library = diffusers if "_class_name" in config else transformers
    named = f"{library.__name__} {library.__version__}"
    return {**row, "count": str(n_params(build(config))), "library": named}


def main() -> None:
    warnings.filterwarnings("ignore")
    lines = [json.loads(line) for line in CATALOG.read_text("utf-8").splitlines()]
    catalog = {line["id"]: line["config"] for line in lines}
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counted = []
    for row in rows:
        if row["name"] in DIFFERENT:
            counted.append({**row, "count": "", "library": ""})
            continue
        try:
            counted.append(recount(row, catalog))
        except Exception as error:  # noqa: BLE001
            print(f"{row['name']}: left as it was ({type(error).__name__}: {str(error)[:80]})")
            counted.append(row)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(counted)
    print(f"{len(counted)} rows")


if __name__ == "__main__":
    main()

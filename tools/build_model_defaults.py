"""Rebuild `model_defaults.jsonl`: figures that a configuration leaves out when they are usual.

A published `config.json`, a nested part above all, omits what equals the default of its type.
The table keeps, for each type of model, the defaults of the names that our reader reads.
Run with `transformers` installed: python tools/build_model_defaults.py
"""

import ast
import json
import re
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src/gpuplan/catalog"
SKIP = {"model_type", "dtype", "torch_dtype", "architectures", "id", "name", "bias"}


def names_read() -> set[str]:
    """Every text constant of the reader that could be a field's name."""
    found: set[str] = set()
    for path in sorted((PACKAGE / "architectures").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    # Tables name fields too: traits of a family (flags=use_qkv_bias:qkv), lists of spellings.
    for table in ("architectures.csv", "words.csv"):
        found.update(re.findall(r"\w+", (PACKAGE / "data" / table).read_text("utf-8")))
    return {name for name in found if name.isidentifier()} - (SKIP - {"bias"})


NOT_STATED = object()
PLAIN = (bool, int, float, str)


def is_short_list(value: object) -> bool:
    """Longer lists name every layer: derived, or written out by whoever publishes."""
    return isinstance(value, list | tuple) and len(value) <= 8


def figures(config: object, names: set[str]) -> dict[str, object]:
    """What the reader would read, nested parts included; figures derived from others left out."""
    kept: dict[str, object] = {}
    for name, found in sorted(vars(config).items()):
        value = found
        is_nested = hasattr(value, "to_dict")
        if name not in names or value is None or value == []:
            continue
        if not is_nested:
            stated = getattr(type(config), name, NOT_STATED)
            is_derived = stated is NOT_STATED and not is_short_list(value)
            if stated is None or (is_derived and name != "tie_word_embeddings"):
                continue
            value = stated if isinstance(stated, PLAIN) else value  # else made by a factory
        if is_nested:
            nested = figures(value, names)
            if nested:
                kept[name] = nested
        elif isinstance(value, PLAIN) or is_short_list(value):
            kept[name] = value
    return kept


def main() -> None:
    from transformers import AutoConfig  # noqa: PLC0415
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # noqa: PLC0415

    warnings.filterwarnings("ignore")
    names, lines = names_read(), []
    for model_type in sorted(CONFIG_MAPPING_NAMES):
        try:
            values = AutoConfig.for_model(model_type)
        except Exception as error:  # noqa: BLE001
            print(f"{model_type}: no defaults ({type(error).__name__})")
            continue
        row = {"model_type": model_type, **figures(values, names)}
        if len(row) > 1:
            lines.append(json.dumps(row, separators=(",", ":")))
    (PACKAGE / "data/model_defaults.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{len(lines)} types of model")


if __name__ == "__main__":
    main()

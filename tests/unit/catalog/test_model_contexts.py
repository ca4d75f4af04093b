"""Longest contexts: published figures, never the default of a class."""

import json

import pytest

from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.model.layers import Attention

ROWS = packaged_rows("gpuplan.catalog", "data/model_contexts.csv")


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("LGAI-EXAONE/EXAONE-4.0-32B", 131_072),
        ("tencent/Hunyuan-A13B-Instruct", 262_144),
        ("HuggingFaceTB/SmolLM3-3B", 65_536),
        ("ibm-granite/granite-4.0-h-small", 131_072),
        ("command-r", 131_072),
        ("Codestral-22B", 32_768),
        ("Mistral-Small-24B-Instruct-2501", 32_768),
        ("grok-1", 8_192),
        ("meta-llama/Llama-2-70b-hf", 4_096),
        ("DeepSeek-R1-Distill-Qwen-1.5B", 131_072),
        ("meta-llama/Llama-3.1-8B", 131_072),
        ("mistralai/Mistral-Large-Instruct-2411", 131_072),
        ("Qwen/Qwen2.5-14B-Instruct", 32_768),
        ("mistralai/Magistral-Small-2509", 131_072),
    ],
)
def test_published_contexts(name, tokens):
    assert find_model(name).max_context_tokens == tokens


def test_every_row_names_a_model_once_and_says_where_it_comes_from():
    ids = [row["id"] for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(models_in_catalog())
    assert all(row["basis"] and int(row["context_tokens"]) >= 2048 for row in ROWS)


def test_a_class_default_is_not_a_published_context():
    model = find_model("Zyphra/Zamba2-7B-Instruct")
    assert model.max_context_tokens is None
    assert any(note.what.endswith("longest context") for note in model.assumptions)


def test_a_users_own_config_keeps_the_default_of_its_class(tmp_path):
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_hidden_layers": 2,
        "vocab_size": 1000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert find_model(str(tmp_path / "config.json")).max_context_tokens == 2048


def test_no_context_is_below_its_sliding_window():
    for name in models_in_catalog():
        model = find_model(name)
        windows = [
            group.mixer.window_tokens
            for group in model.main.groups
            if isinstance(group.mixer, Attention) and group.mixer.window_tokens
        ]
        if windows and model.max_context_tokens is not None:
            assert model.max_context_tokens >= max(windows), name

"""Faults that the catalog once had: each would be found today by a rule."""

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.integrity import models as rules
from gpuplan.catalog.integrity.run import check_catalog
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.units import GIB
from unit.catalog.test_integrity import TODAY

CONTEXTS = [
    ("LGAI-EXAONE/EXAONE-4.0-32B", 2048),
    ("tencent/Hunyuan-A13B-Instruct", 2048),
    ("HuggingFaceTB/SmolLM3-3B", 2048),
    ("ibm-granite/granite-4.0-h-small", 2048),
    ("CohereForAI/c4ai-command-r-v01", 2048),
    ("mistralai/Codestral-22B-v0.1", 131_072),
    ("mistralai/Mistral-Small-24B-Instruct-2501", 131_072),
    ("xai-org/grok-1", 131_072),
    ("meta-llama/Llama-2-13b-hf", 2048),
    ("meta-llama/Llama-2-70b-hf", 2048),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 4096),
]


def config_of(name):
    text = files("gpuplan.catalog").joinpath("data/models.jsonl").read_text("utf-8")
    rows = (json.loads(line) for line in text.splitlines())
    return next(row["config"] for row in rows if row["id"] == name)


@pytest.mark.parametrize(("name", "tokens"), CONTEXTS)
def test_a_context_of_a_class_or_a_relative_is_found(name, tokens):
    model = find_model(name)
    assert rules.context_as_published([model]).findings == ()
    [finding] = rules.context_as_published([replace(model, max_context_tokens=tokens)]).findings
    assert finding.rule == "model-context"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("garage-bAInd/Platypus2-70B", {"num_key_value_heads": 64}),
        ("Qwen/Qwen1.5-1.8B-Chat", {"tie_word_embeddings": True}),
    ],
)
def test_heads_and_tables_that_change_the_count_are_found(name, fault):
    assert rules.counted_as_published([find_model(name)]).findings == ()
    wrong = read_model({**config_of(name), **fault}, name=name)
    [finding] = rules.counted_as_published([wrong]).findings
    assert finding.rule == "model-params"


@pytest.mark.parametrize(
    ("accelerator", "name", "gib"), [("h200-sxm", "1g.18gb", 18.0), ("h100-sxm", "1g.10gb", 10.0)]
)
def test_a_nominal_size_of_a_mig_profile_is_found(accelerator, name, gib):
    catalog = read_catalog()
    nominal = tuple(
        replace(p, memory_bytes=gib * GIB) if (p.accelerator, p.name) == (accelerator, name) else p
        for p in catalog.mig_profiles
    )
    assert nominal != catalog.mig_profiles
    found = check_catalog(replace(catalog, mig_profiles=nominal), today=TODAY)
    assert "mig-profile" in {finding.rule for finding in found}

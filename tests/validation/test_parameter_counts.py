"""Totals and active parameters against what the publishers state, and the table's provenance.

Totals: model cards and the parameter counts of the published weight files. Active: model cards and
papers, which round, and which count both token tables, one, or none; any of the three may match.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from gpuplan.catalog.models import find_model
from shared_data import ROOT, shared_file

BILLION = 1e9
EXACT = {
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,
    "meta-llama/Meta-Llama-3.1-405B": 405_853_388_800,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "meta-llama/Llama-3.2-3B": 3_212_749_824,
    "meta-llama/Llama-2-7b-hf": 6_738_415_616,
    "meta-llama/Llama-2-13b-hf": 13_015_864_320,
    "meta-llama/Llama-2-70b-hf": 68_976_648_192,
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": 108_641_793_536,
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": 401_583_781_376,
    "mistralai/Mistral-7B-v0.1": 7_241_732_096,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "mistralai/Mixtral-8x22B-v0.1": 140_620_634_112,
    "mistralai/Mistral-Nemo-Instruct-2407": 12_247_782_400,
    "mistralai/Mistral-Large-Instruct-2407": 122_610_069_504,
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen2.5-72B-Instruct": 72_706_203_648,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "google/gemma-2b": 2_506_172_416,
    "google/gemma-2-2b-it": 2_614_341_888,
    "google/gemma-2-9b-it": 9_241_705_984,
    "google/gemma-2-27b-it": 27_227_128_320,
    "google/gemma-3-1b-it": 999_885_952,
    "google/gemma-3-4b-it": 4_300_079_472,
    "google/gemma-3-12b-it": 12_187_325_040,
    "google/gemma-3-27b-it": 27_432_406_640,
    "microsoft/phi-2": 2_779_683_840,
    "microsoft/phi-4": 14_659_507_200,
    "microsoft/Phi-3.5-mini-instruct": 3_821_079_552,
    "openai-community/gpt2": 124_439_808,
    "EleutherAI/gpt-neox-20b": 20_554_567_680,
    "EleutherAI/gpt-j-6b": 6_050_882_784,
    "EleutherAI/pythia-12b": 11_846_072_320,
    "bigscience/bloom": 176_247_271_424,
    "bigscience/bloom-560m": 559_214_592,
    "facebook/opt-1.3b": 1_315_758_080,
    "01-ai/Yi-34B": 34_388_917_248,
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": 49_867_145_216,
    "openai/whisper-large-v3": 1_543_490_560,
    "BAAI/bge-m3": 567_754_752,
    "BAAI/bge-large-en-v1.5": 335_141_888,
    "google-bert/bert-base-uncased": 109_482_240,
    "black-forest-labs/FLUX.1-dev/transformer": 11_901_408_320,
    "stabilityai/stable-diffusion-xl-base-1.0/unet": 2_567_463_684,
    "deepseek-ai/DeepSeek-V3": 671_026_419_200,
}
# Billions as published: total, active, and what the last digit of each leaves open.
ROUNDED = {
    "deepseek-ai/DeepSeek-V2": (236, 21, 0.5),
    "deepseek-ai/DeepSeek-V2-Lite": (15.7, 2.4, 0.06),
    "deepseek-ai/DeepSeek-V3": (671, 37, 0.5),
    "deepseek-ai/DeepSeek-V4-Flash": (284, 13, 0.5),
    "deepseek-ai/DeepSeek-V4-Pro": (1573, 49, 1.0),
    "moonshotai/Kimi-K2-Instruct": (1026, 32, 0.5),
    "Qwen/Qwen3-235B-A22B": (235, 22, 0.5),
    "Qwen/Qwen3-30B-A3B": (30.5, 3.3, 0.06),
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": (480, 35, 0.5),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (80, 3, 0.5),
    "openai/gpt-oss-20b": (20.9, 3.6, 0.05),
    "openai/gpt-oss-120b": (116.8, 5.1, 0.05),
    "mistralai/Mixtral-8x7B-v0.1": (46.7, 12.9, 0.05),
    "mistralai/Mixtral-8x22B-v0.1": (140.6, 39, 0.5),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": (109, 17, 0.5),
    "zai-org/GLM-5": (744, 40, 0.5),
    "XiaomiMiMo/MiMo-V2-Flash": (309, 15, 0.5),
    "MiniMaxAI/MiniMax-M2.5": (229, 10, 0.5),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6, 3.6, 0.06),
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (120.6, 12.7, 0.1),
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": (550, 55, 1.0),
    "Qwen/Qwen3.5-397B-A17B": (397, 17, 0.5),
    "Qwen/Qwen3.5-122B-A10B": (122.5, 10, 0.5),
}


@pytest.mark.parametrize("name", EXACT)
def test_total_is_the_published_one(name):
    assert find_model(name).n_params == pytest.approx(EXACT[name], rel=0.0005)


@pytest.mark.parametrize("name", ROUNDED)
def test_total_and_active_within_rounding(name):
    total, active, slack = ROUNDED[name]
    model = find_model(name)
    tables = model.embedding
    towers = sum(s.n_params for s in model.stacks if s.role in ("vision", "audio"))
    worked = model.n_active_params - towers
    counts = [worked, worked - tables.n_input_params, worked - tables.n_params]
    assert model.n_params / BILLION == pytest.approx(total, abs=max(slack, 0.005 * total))
    assert any(count / BILLION == pytest.approx(active, abs=slack) for count in counts)


def test_glm_45_counts_prediction_layers_and_no_tables():
    """355 B in the paper's convention: prediction layers in, token tables out [GLM-4.5]."""
    model = find_model("zai-org/GLM-4.5")
    counted = model.n_params + model.n_mtp_params - model.embedding.n_params
    assert counted == pytest.approx(355e9, abs=0.5e9)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("tool", "raw", "table"),
    [
        ("build_models", "catalog/models/manifest.csv", "models.jsonl"),
        ("build_timm", "catalog/models/timm_selected.csv", "timm.csv"),
    ],
)
def test_the_table_is_what_the_raw_files_give(tool, raw, table, tmp_path, monkeypatch):
    found = shared_file(raw)
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    module = _tool(tool)
    source = found.parent if tool == "build_models" else found
    module.main(source, tmp_path / table)
    kept = ROOT / "src/gpuplan/catalog/data" / table
    assert (tmp_path / table).read_text("utf-8") == kept.read_text("utf-8")


def _tool(name: str):
    path = Path(ROOT / "tools" / f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

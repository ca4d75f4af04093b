import numpy as np
import pytest

from gpuplan.calibration.novelty import model_family, novelty, unknown, version_label
from gpuplan.calibration.ranges import Miss, spreads, tails


def test_new_rows_fall_inside_eight_times_out_of_ten():
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(300):
        spread = tails(rng.normal(0.05, 0.3, 60).tolist())
        inside += [spread.log_low <= x <= spread.log_high for x in rng.normal(0.05, 0.3, 40)]
    assert np.mean(inside) == pytest.approx(0.81, abs=0.02)


def test_few_rows_give_wider_tails_than_many():
    rng = np.random.default_rng(4)
    few = np.mean([tails(rng.normal(size=8).tolist()).log_high for _ in range(400)])
    many = np.mean([tails(rng.normal(size=800).tolist()).log_high for _ in range(40)])
    assert few > many


def test_cells_with_few_rows_are_left_to_their_regime():
    misses = [Miss("row", "max_load", "m", ("thin",), 0.1)] * 5
    misses += [Miss("row", "max_load", "m", ("thick",), 0.1)] * 50
    found = spreads(misses)
    assert "row|max_load|m|thick" in found
    assert "row|max_load|m|thin" not in found
    assert found["row|max_load|m|all"].n == 55


def test_what_is_new_is_named():
    known = {
        "model": frozenset({"llama-70b"}),
        "version": frozenset({"vllm-0.11"}),
        "hardware": frozenset({"Hopper 16 vllm"}),
        "era": frozenset({"vllm-0.10"}),
        "pair": frozenset({"llama-70b on Hopper 16 vllm"}),
    }
    labels = {"engine": "vllm", "family": "Hopper", "precision": "16", "era": "vllm-0.10"}
    assert unknown(known, labels, model="Llama-3.3-70B", version="0.11.2") == ()
    missing = unknown(known, labels, model="Other-9B", version="0.30.0")
    assert missing == ("model other-9b", "version vllm-0.30", "pair other-9b on Hopper 16 vllm")
    assert novelty(missing) == "version"
    older = unknown(known, {**labels, "era": "vllm-0.1"}, model="Llama-3.3-70B", version="0.11")
    assert novelty(older) == "source"
    assert novelty(missing[:1]) == "model"
    assert novelty(()) == "row"


def test_names_of_one_design_are_one_family():
    assert model_family("meta-llama/Llama-3.3-70B-Instruct") == model_family("Llama-2-70B")
    assert model_family("deepseek-ai/DeepSeek-V3") == model_family("nvidia/DeepSeek-R1-NVFP4")
    assert version_label("sglang", "nightly-dev") == "sglang"

import numpy as np
import pytest

from gpuplan.calibration.inference.novelty import model_family, novelty, unknown, version_label
from gpuplan.calibration.inference.ranges import Miss, errors_by_split, even_tails, spreads, tails


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


def test_kinds_of_networks_are_scored_apart_at_max_load():
    where = ("model", "max_load", "output_tokens_per_s")
    misses = [Miss(*where, ("vllm|dense", "dense"), 0.0)] * 4
    misses += [Miss(*where, ("vllm|experts", "experts"), 0.5)] * 4
    misses += [Miss("model", "max_load", "e2e_s", ("vllm|dense", "dense"), 0.0)] * 4
    found = errors_by_split(misses)["model"]
    name = "max_load output_tokens_per_s"
    assert {key: errors.n for key, errors in found.items()} == {
        name: 8, f"{name}, dense": 4, f"{name}, experts": 4, "max_load e2e_s": 4,
    }  # fmt: skip
    assert found[f"{name}, dense"].median_ape == 0.0
    assert found[f"{name}, experts"].median_ape > 0.3


def test_coverage_does_not_depend_on_tables_that_alternate():
    rng = np.random.default_rng(5)
    values = rng.normal(0.0, 0.1, 400) + np.tile([-1.0, 1.0], 200)
    misses = [Miss("source", "static_batch", "m", ("a|dense", "dense"), float(v)) for v in values]
    found = errors_by_split(misses)["source"]["static_batch m"]
    assert 0.74 <= found.range_coverage <= 0.86


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


def test_publications_weigh_the_same_however_many_rows_they_have():
    many = [Miss("source", "max_load", "m", (), 0.0, "large")] * 1000
    few = [Miss("source", "max_load", "m", (), at, name)
           for at, name in ((0.5, "fast"), (-0.7, "slow")) for _ in range(10)]  # fmt: skip
    found = spreads([*many, *few])
    alike = found["source|max_load|m|all"]
    apart = found["publication|max_load|m|all"]
    assert (alike.log_low, alike.log_high) == (0.0, 0.0)  # the large one speaks for all
    assert (apart.log_low, apart.log_high) == (-0.7, 0.5)


def test_two_publications_tell_nothing_of_a_third():
    misses = [Miss("source", "max_load", "m", (), 0.1, name) for name in "ab" for _ in range(20)]
    assert not [key for key in spreads(misses) if key.startswith("publication")]


def test_even_tails_are_plain_tails_of_one_group():
    values = [float(at) for at in range(101)]
    found = even_tails([values])
    assert (found.log_low, found.log_mid, found.log_high) == pytest.approx((10, 50, 90), abs=1)

"""From what the user typed to a setup: layouts, engines, regimes, and what is assumed."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.errors import InputError
from gpuplan.studies.inference.configuration import predict, setup_of, startup
from gpuplan.studies.naming import model_named

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def setup(on="h100-sxm", **asked):
    choice = find_accelerator(on, read_catalog())
    return setup_of(model_named(LLAMA), choice, PredictRequest(**asked))


def load(**asked):
    return setup(load=LoadRequest(**asked))[0].load


@pytest.mark.parametrize(
    ("on", "asked", "tp"), [("4xh100-sxm", {}, 4), ("8xh100-sxm", {"pp": 2}, 4), ("l4", {}, 1)]
)
def test_named_accelerators_are_tensor_parallel_after_the_other_ways(on, asked, tp):
    assert setup(on, **asked)[0].layout.tp == tp


@pytest.mark.parametrize(
    ("asked", "regime"),
    [
        ({}, "max_load"),
        ({"n_concurrent": 8}, "fixed_concurrency"),
        ({"requests_per_s": 2.0}, "poisson"),
        ({"regime": "static_batch", "n_concurrent": 4}, "static_batch"),
    ],
)
def test_the_regime_follows_from_what_is_given(asked, regime):
    assert load(**asked).regime == regime


@pytest.mark.parametrize(
    ("asked", "flag"),
    [({"regime": "poisson"}, "--rate"), ({"regime": "static_batch"}, "--concurrency")],
)
def test_a_regime_without_its_figure_names_the_flag(asked, flag):
    with pytest.raises(InputError) as caught:
        load(**asked)
    assert flag in str(caught.value)


def test_an_unknown_regime_lists_the_known_ones():
    with pytest.raises(InputError, match="max_load"):
        load(regime="full throttle")


def test_defaults_are_assumptions_and_given_values_are_not():
    _, assumed = setup()
    assert {"engine", "tokens"} <= {note.what for note in assumed}
    given = LoadRequest(input_tokens=100, output_tokens=10)
    _, told = setup(load=given, engine_version="0.11")
    assert not {"engine", "tokens"} & {note.what for note in told}


@pytest.mark.parametrize(("version", "is_told"), [("9.9", True), ("0.32", False), ("main", False)])
def test_a_version_newer_than_any_known_is_told(version, is_told):
    found, notes = setup(engine_version=version)
    assert found.engine.version == version
    told = [note for note in notes if note.what == "engine"]
    assert bool(told) == is_told
    assert all("those of 0.32" in note.why for note in told)


@pytest.mark.parametrize(("text", "version"), [("vLLM 0.11", "0.11"), ("vllm-0.15.1", "0.15.1")])
def test_a_version_beside_the_engines_name_is_meant(text, version):
    found, _ = setup(engine=text)
    assert (found.engine.name, found.engine.version) == ("vllm", version)
    both, _ = setup(engine=text, engine_version="0.9")
    assert both.engine.version == "0.9"


def test_lora_adapters_take_slots_and_limits_are_kept():
    use = LoraUse(n_adapters=4, rank=16, request_frac=1.0)
    found, _ = setup(max_sequences=7, load=LoadRequest(adapters=use))
    assert found.settings.max_sequences == 7
    assert (found.settings.lora.n_slots, found.settings.lora.max_rank) == (4, 16)


def test_heads_that_cannot_be_divided_are_an_error():
    with pytest.raises(InputError, match="heads"):
        setup(tp=3)


def test_a_prediction_has_every_part_and_power_follows_the_rate():
    found = predict(LLAMA, "h100-sxm", PredictRequest(load=LoadRequest(n_concurrent=16)))
    assert found.memory.weights_bytes == pytest.approx(2 * 8.03e9, rel=0.01)
    rate, power = found.served.output_tokens_per_s.value, found.power["power_w"].value
    energy = found.power["energy_j_per_output_token"].value
    assert energy == pytest.approx(power / rate)
    assert found.served.e2e_mean_s.value > found.served.ttft_mean_s.value


def test_start_up_is_the_sum_of_its_phases_and_grows_with_the_weights():
    found, _ = setup()
    light, heavy = startup(found, 1e9), startup(found, 100e9)
    assert heavy["total"].value > light["total"].value
    parts = [each.value for name, each in light.items() if name != "total"]
    assert light["total"].value == pytest.approx(sum(parts))


def test_a_cached_prefix_saves_prefill_and_is_still_read_at_every_step():
    def found(hit_frac):
        asked = LoadRequest(
            input_tokens=8000, output_tokens=200, n_concurrent=16, prefix_hit_frac=hit_frac
        )
        return predict(LLAMA, "h100-sxm", PredictRequest(load=asked))

    cold, warm = found(0.0), found(0.9)
    fresh = 1.0 - 0.9
    ratio = warm.served.ttft_mean_s.value / cold.served.ttft_mean_s.value
    assert fresh < ratio < 0.5
    assert warm.served.tpot_mean_s.value < cold.served.tpot_mean_s.value
    assert warm.served.decode.attention_s == pytest.approx(cold.served.decode.attention_s)
    assert warm.memory.sequence_bytes == cold.memory.sequence_bytes

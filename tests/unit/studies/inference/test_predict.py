"""Predictions of whole deployments with the package's own calibration."""

from dataclasses import replace
from math import ceil

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import (
    USUAL_ENGINE,
    EngineChoice,
    ServingLoad,
    ServingSetup,
)
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.requests.requests import (
    FitRequest,
    LoadRequest,
    PredictRequest,
    ReplicaSpan,
)
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.studies.fit import fit
from gpuplan.studies.inference.configuration import predict
from gpuplan.studies.inference.predict import predict_inference

CHAT = ServingLoad(regime="fixed_concurrency", input_tokens=1024, output_tokens=256, n_sequences=16)


def setup(
    model: str = "Llama-3.3-70B", chip: str = "h100-sxm", *, tp: int = 2,
    load: ServingLoad = CHAT, version: str = "0.11.0", precision: str = "fp8",
) -> ServingSetup:  # fmt: skip
    network = find_model(model)
    accelerator = find_accelerator(chip, read_catalog()).accelerator
    engine = EngineChoice(name="vllm", version=version)
    return ServingSetup(
        model=network,
        accelerator=accelerator,
        storage=storage_of(network, FORMATS[precision], None)[0],
        layout=ServingLayout(tp=tp),
        engine=engine,
        settings=engine_settings("vllm", (0, 11), accelerator),
        load=load,
    )


def test_chat_service_needs_two_replicas_of_two():
    """Scenario A11: one TP2 replica cannot hold 40 ms between tokens, two can."""
    chat = ServingLoad(regime="poisson", input_tokens=2200, output_tokens=350, requests_per_s=3.33)
    one = predict_inference(setup(load=chat))
    two = predict_inference(replace(setup(load=chat), n_replicas=2.0))
    assert one.tpot_mean_s.value > 0.040
    assert two.tpot_mean_s.value < 0.040
    # Little's law: requests in flight are rate times residence.
    in_flight = 3.33 / 2 * 350 * two.tpot_mean_s.value
    assert two.n_running == pytest.approx(in_flight, rel=0.02)


def test_what_does_not_fit_is_said_and_still_timed():
    answer = predict_inference(setup(tp=1))
    assert not answer.fits
    assert answer.tpot_mean_s.value > 0
    assert predict_inference(setup(tp=2)).fits


def test_what_was_never_measured_has_a_wider_range_and_a_lower_tier():
    known = predict_inference(setup())
    new = predict_inference(setup(chip="tpu-v6e", tp=8))
    assert new.novelty.kind == "new accelerator"
    assert any(text.startswith("accelerator") for text in new.unknown_labels)
    assert new.output_tokens_per_s.tier == "estimated"
    width = [e.high / e.low for e in (known.tpot_mean_s, new.tpot_mean_s)]
    assert width[1] > width[0]


def test_any_chip_with_a_data_sheet_is_answered():
    for chip in ("tpu-v5p", "trainium2", "gaudi3", "mi355x", "l4", "cpu-epyc-9654", "t4"):
        answer = predict_inference(setup("Llama-3.1-8B", chip, tp=1, precision="bf16"))
        assert 0 < answer.tpot_mean_s.low < answer.tpot_mean_s.value < answer.tpot_mean_s.high


def test_parts_of_the_step_are_those_of_the_time_per_token():
    alone = replace(CHAT, n_sequences=1)
    answer = predict_inference(setup(load=alone))
    decode = answer.decode
    total = (
        decode.matrices_s + decode.experts_s + decode.attention_s + decode.activations_s
        + decode.operators_s + decode.exchange_s + decode.host_s
    )  # fmt: skip
    assert answer.tpot_mean_s.value == pytest.approx(total, rel=1e-6)


def test_decode_of_one_stream_stays_below_bandwidth_over_size():
    """Trap: memory rate over model size bounds the speed of a single stream."""
    answer = predict_inference(setup("Llama-3.1-8B", tp=1, precision="bf16",
                                     load=replace(CHAT, n_sequences=1)))  # fmt: skip
    bound = 3.35e12 / (2 * 8.03e9)
    assert 0.5 * bound < 1 / answer.tpot_mean_s.value < bound


def test_small_models_gain_little_from_many_ranks():
    """Trap: tensor parallelism of a small model pays latency for work it does not have."""
    times = [
        predict_inference(
            setup("Llama-3.1-8B", tp=tp, precision="bf16", load=replace(CHAT, n_sequences=1))
        ).tpot_mean_s.value
        for tp in (1, 8)
    ]
    assert times[0] / times[1] < 5


def test_more_users_wait_longer_and_give_more():
    found = [predict_inference(setup(load=replace(CHAT, n_sequences=n))) for n in (1, 8, 32, 64)]
    for name in ("ttft_mean_s", "tpot_mean_s", "output_tokens_per_s"):
        values = [getattr(answer, name).value for answer in found]
        assert values == sorted(values), name


def test_the_rate_of_a_closed_loop_lies_where_its_latencies_lie():
    """Little's law: 16 users over the whole answer, at both ends of the latencies' ranges."""
    found = predict_inference(setup())
    rate, ttft, tpot = found.output_tokens_per_s, found.ttft_mean_s, found.tpot_mean_s
    for bound, first_s, each_s in (
        (rate.low, ttft.high, tpot.high), (rate.high, ttft.low, tpot.low),
    ):  # fmt: skip
        assert bound == pytest.approx(16 * 256 / (first_s + 255 * each_s), rel=1e-6)
    assert found.e2e_mean_s.high == pytest.approx(ttft.high + 255 * tpot.high)


def test_a_rate_that_cannot_be_held_is_called_overload_and_runs_no_more_than_fits():
    asked = LoadRequest(requests_per_s=200.0, input_tokens=1000, output_tokens=250)
    over = predict("Llama-3.1-8B", "H100", PredictRequest(load=asked))
    assert over.is_overloaded
    # 1,250 tokens of 128 KiB each are 164 MB: some 400 find room beside the weights.
    assert 200 < over.served.n_running < 450
    least = ceil(0.98 * 200.0 / over.served_per_s)
    enough = predict("Llama-3.1-8B", "H100", PredictRequest(load=asked, n_replicas=least))
    assert not enough.is_overloaded


def test_every_verb_takes_the_same_version_where_none_is_named():
    request = PredictRequest(load=LoadRequest(requests_per_s=1.0))
    served = predict("Llama-3.1-8B", "H100", request).setup
    assert (served.engine.name, served.engine.version) == (USUAL_ENGINE.name, USUAL_ENGINE.version)
    assert fit("Llama-3.1-8B", "H100", FitRequest()).deployment.engine.name == served.settings.name


def test_a_replica_over_servers_is_as_slow_as_its_network():
    load = LoadRequest(n_concurrent=64, input_tokens=1000, output_tokens=200)

    def tpot_s(gbit):
        rate = None if gbit is None else gbit * 1e9 / 8
        span = ReplicaSpan(network_bytes_per_s=rate)
        asked = PredictRequest(dp=16, ep=16, span=span, load=load)
        return predict("DeepSeek-R1", "H100", asked)

    slow, fast, unsaid = (tpot_s(gbit) for gbit in (100, 3200, None))
    assert slow.served.tpot_mean_s.value > 1.2 * fast.served.tpot_mean_s.value
    assert [a.change for a in unsaid.assumptions if a.what == "links"] == ["--node-gbit 3200"]
    assert all(a.what != "links" for a in fast.assumptions)

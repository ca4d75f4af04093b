"""Requests at a rate: limits of light and of heavy load, scaling laws, and what is said."""

from dataclasses import replace
from math import log
from statistics import geometric_mean, median

import numpy as np
import pytest

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import (
    EngineChoice,
    LatencyLimits,
    ServingLoad,
    ServingSetup,
    SpeculativeDecoding,
)
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.performance.kernels.regimes import decode_token_s, max_load, prefill_s
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.performance.serving.regimes import serving_case
from gpuplan.studies.inference.deployment import EvaluatedDeployment, constants_for
from gpuplan.studies.inference.open_loop import (
    MOST_USED_FRAC,
    TPOT_LIMIT_FRAC,
    TTFT_LIMIT_FRAC,
    open_loop_run,
    slowdowns,
)
from gpuplan.studies.inference.predict import metric_estimates, predict_inference, replica_forecast
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.validation.inference_table import groups as grouped
from gpuplan.studies.validation.inference_table import (
    log_predictions,
    not_simulated,
    observations,
    read_table,
    simulated,
)


def setup(
    rate: float, *, layout: ServingLayout | None = None, n_replicas: float = 1.0, **load: object
) -> ServingSetup:
    network = find_model("Llama-3.1-8B")
    accelerator = find_accelerator("h100-sxm", read_catalog()).accelerator
    asked: dict[str, object] = {"input_tokens": 512.0, "output_tokens": 128.0, **load}
    return ServingSetup(
        model=network, accelerator=accelerator, storage=storage_of(network, None, None)[0],
        layout=layout or ServingLayout(), engine=EngineChoice(name="vllm", version="0.11.0"),
        settings=engine_settings("vllm", (0, 11), accelerator),
        load=ServingLoad(regime="poisson", requests_per_s=rate, **asked),
        n_replicas=n_replicas,
    )  # fmt: skip


def parts(of: ServingSetup):
    k, r = constants_for(inference_calibration(), inference_labels(of))
    return setup_work(of), k, r, serving_case(of)[0]


def run(of: ServingSetup, *, slower: float = 1.0):
    _, k, r, _ = parts(of)
    k = k._replace(
        slowdown_frac=k.slowdown_frac * slower, host_s=k.host_s * slower,
        host_sequence_s=k.host_sequence_s * slower,
    )  # fmt: skip
    return open_loop_run(EvaluatedDeployment(of, (k, r)))


def full_rate(of: ServingSetup) -> float:
    work, k, r, case = parts(of)
    return float(max_load(work, k, r, case).output_tokens_per_s) / case.output_tokens


def test_a_lone_request_reads_its_prompt_and_decodes_alone():
    lone = setup(0.001)
    found = run(lone)
    work, k, _, case = parts(lone)
    # Prompts scatter in length, and reading is not quite in proportion.
    assert found.wait_mean_s == pytest.approx(float(prefill_s(work, k, case)), rel=0.15)
    assert found.tpot_mean_s == pytest.approx(float(decode_token_s(work, k, case, 1.0)), rel=0.03)
    assert found.tpot_p50_s == pytest.approx(found.tpot_mean_s, rel=0.05)


def test_more_requests_never_wait_less():
    full = full_rate(setup(1.0))
    runs = [run(setup(share * full)) for share in (0.1, 0.4, 0.7, 0.9)]
    for field in ("wait_mean_s", "tpot_mean_s", "tpot_p50_s", "n_running"):
        values = [getattr(found, field) for found in runs]
        assert values == sorted(values), field
    assert not any(found.is_growing for found in runs)


def test_running_is_rate_times_residence():
    of = setup(0.6 * full_rate(setup(1.0)))
    found = run(of)
    expected = of.load.requests_per_s * 128.0 * found.tpot_mean_s
    assert found.n_running == pytest.approx(expected, rel=0.05)


def test_twice_the_time_at_half_the_rate_is_twice_the_latency():
    rate = 0.5 * full_rate(setup(1.0))
    once, twice = run(setup(rate)), run(setup(0.5 * rate), slower=2.0)
    assert twice.tpot_mean_s == pytest.approx(2.0 * once.tpot_mean_s, rel=1e-3)
    assert twice.wait_mean_s == pytest.approx(2.0 * once.wait_mean_s, rel=1e-3)


def test_the_same_question_has_the_same_answer():
    assert run(setup(5.0)) == run(setup(5.0))


def test_what_cannot_be_held_is_said():
    over = setup(2.0 * full_rate(setup(1.0)))
    told = predict_inference(over)
    assert run(over).is_growing
    assert [item.what for item in told.assumptions] == ["scatter of lengths", "length of the run"]
    calm = predict_inference(setup(1.0))
    assert [item.what for item in calm.assumptions] == ["scatter of lengths"]


def test_a_rate_known_to_be_held_does_not_run_away():
    rate = 1.15 * full_rate(setup(1.0))
    free, held = run(setup(rate)), run(setup(rate, is_held=True))
    assert free.is_growing
    assert held.wait_mean_s < 0.1 * free.wait_mean_s


def test_a_rate_raised_to_its_limits_has_latencies_below_them():
    limits = LatencyLimits(2.0, 0.2)
    tight = LatencyLimits(0.45, 0.04)
    found, quick = (
        replica_forecast(EvaluatedDeployment(of, parts(of)[1:3]))
        for of in (setup(4.0, limits=limits), setup(4.0, limits=tight))
    )
    assert found.served.tpot_s == pytest.approx(TPOT_LIMIT_FRAC * limits.tpot_p99_s)
    assert found.served.ttft_s == pytest.approx(TTFT_LIMIT_FRAC * limits.ttft_p99_s)
    assert quick.served.tpot_s < found.served.tpot_s
    assert quick.served.ttft_s < found.served.ttft_s
    assert "limits on TPOT and TTFT" in found.assumptions[0].value


@pytest.mark.parametrize("used_frac", [0.1, 0.8, 0.96, 1.3])
@pytest.mark.parametrize("is_held", [False, True])
def test_slowdowns_lie_around_what_is_predicted_as_far_as_it_keeps_up(used_frac, is_held):
    found = slowdowns(used_frac, is_held=is_held)
    if used_frac >= MOST_USED_FRAC and not is_held:
        assert found == [1.0]
        return
    assert found == sorted(found)
    assert max(found) * used_frac < MOST_USED_FRAC
    if used_frac <= 0.8:
        assert log(geometric_mean(found)) == pytest.approx(0.0, abs=0.01)


def test_a_short_run_above_the_full_rate_waits_less_than_a_long_one():
    rate = 1.5 * full_rate(setup(1.0))
    short, long = (run(setup(rate, n_requests=n)) for n in (200, 4000))
    assert short.n_requests == 200
    assert short.wait_mean_s < 0.5 * long.wait_mean_s


def test_replicas_share_the_rate():
    rate = 0.6 * full_rate(setup(1.0))
    one, four = run(setup(rate)), run(setup(4.0 * rate, n_replicas=4.0))
    # Requests dealt in turn come more evenly than at random.
    assert four.tpot_mean_s == pytest.approx(one.tpot_mean_s, rel=0.1)
    assert four.wait_mean_s <= one.wait_mean_s


def test_cached_prompts_are_read_sooner():
    rate = 0.5 * full_rate(setup(1.0))
    cold, warm = run(setup(rate)), run(setup(rate, cached_input_frac=0.8))
    assert warm.wait_mean_s < cold.wait_mean_s
    assert warm.tpot_mean_s < cold.tpot_mean_s


@pytest.mark.parametrize(
    "changes",
    [{"output_tokens": 1.0}, {"input_tokens": 1.0}, {"input_tokens": 200_000.0},
     {"n_requests": 1}],
    ids=["one token", "no prompt", "long prompts", "one request"],
)  # fmt: skip
def test_odd_loads_have_finite_answers(changes):
    found = metric_estimates(predict_inference(setup(0.2, **changes)))
    assert all(0.0 < estimate.value < float("inf") for estimate in found.values())


@pytest.mark.parametrize("layout", [ServingLayout(pp=4), ServingLayout(tp=2, cp=2)], ids=str)
def test_layouts_with_several_batches_run(layout):
    found = run(setup(2.0, layout=layout))
    assert 0.0 < found.tpot_mean_s < found.wait_mean_s


def test_what_the_simulator_cannot_count_is_answered_by_the_formula_and_said():
    slow = replace(setup(0.001, input_tokens=1e6), model=find_model("Falcon-180B"))
    slow = replace(slow, accelerator=find_accelerator("t4", read_catalog()).accelerator)
    assert run(slow) is None
    told = predict_inference(slow)
    assert [item.what for item in told.assumptions] == ["waits"]
    assert told.ttft_mean_s.value > 0.0


def test_drafts_shorten_answers():
    plain = setup(1.0)
    drafted = replace(plain, drafts=SpeculativeDecoding(n_tokens=3, acceptance_frac=0.8))
    assert run(drafted).tpot_mean_s < run(plain).tpot_mean_s


ROW = {
    "id": "a", "source": "here", "accelerator": "H100 SXM", "n_accelerators": "1", "tp": "1",
    "model": "Llama-3.1-8B", "engine": "vLLM", "engine_version": "0.11.0", "regime": "poisson",
    "input_tokens": "512", "output_tokens": "128", "request_rate_per_s": "12",
    "measured_ttft_mean_ms": "60", "measured_tpot_mean_ms": "11", "measured_tpot_p99_ms": "14",
    "measured_ttft_p99_ms": "200", "measured_e2e_s": "1.5",
}  # fmt: skip


def test_the_fit_sees_what_predictions_print():
    """Columns of formulas moved by runs equal single predictions, figure by figure."""
    table = read_table([ROW, {**ROW, "id": "b", "request_rate_per_s": "30"}])
    seen = observations(table)
    known = inference_calibration()
    labelled = [constants_for(known, labels) for labels in table.labels]
    names = [*labelled[0][0]._fields, *labelled[0][1]._fields]
    columns = zip(*((*k, *r) for k, r in labelled), strict=True)
    values = {name: np.array(column) for name, column in zip(names, columns, strict=True)}
    runs = simulated(table, values)
    found = np.exp(log_predictions(grouped(table, seen), values, runs, len(seen.row)))
    for row, metric, value in zip(seen.row, seen.metric, found, strict=True):
        printed = metric_estimates(predict_inference(table.setups[row]))[metric].value
        if metric.endswith("p99_ms"):
            printed /= np.exp(known.ranges.middle(str(metric), "poisson"))
        assert value == pytest.approx(printed, rel=1e-6), metric
    still = log_predictions(grouped(table, seen), values, not_simulated(2), len(seen.row))
    assert median(abs(np.log(found) - still)) > 0.0


def test_notes_say_how_many_were_sent_and_how_fast():
    note = "max_num_seqs 128, ShareGPT 300 requests at 10 sessions/s arrival file"
    row = {**ROW, "regime": "open loop trace", "request_rate_per_s": "", "layout_note": note}
    found = read_table([row]).setups[0]
    assert (found.load.requests_per_s, found.load.n_requests) == (10.0, 300)
    assert found.settings.max_sequences == 128


def test_large_networks_of_two_machines_are_two_stages():
    row = {
        **ROW, "source": "mlperf_loadgen_logs", "model": "Llama-3.1-405B", "tp": "",
        "n_accelerators": "16", "engine": "TensorRT 10.8", "engine_version": "v5.1",
    }  # fmt: skip
    found = read_table([row]).setups[0]
    assert (found.layout.tp, found.layout.pp) == (8, 2)
    assert found.load.is_held


def test_replicas_behind_one_router_wait_less_than_one_alone_and_as_in_a_replay():
    alone, among = (run(setup(8.0 * n, n_replicas=n)) for n in (1.0, 8.0))
    assert among.wait_mean_s < alone.wait_mean_s
    assert among.n_running == pytest.approx(alone.n_running, rel=0.1)


@pytest.mark.parametrize("rate", [1e-12, 1e-6])
def test_a_request_in_years_is_served_alone(rate: float):
    rare, alone = run(setup(rate)), run(setup(1e-3))
    assert rare is not None
    assert alone is not None
    assert rare.tpot_mean_s == pytest.approx(alone.tpot_mean_s, rel=0.1)
    assert rare.n_running == 1.0

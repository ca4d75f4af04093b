"""Predict, roofline, scale and validate as a user meets them."""

import json

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InputError

ASKED = ["Llama-3.3-70B", "--on", "2xH100", "--precision", "fp8"]


def answer(*arguments: str):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None, done.exception
    return json.loads(done.stdout)


def refusal(*arguments: str) -> InputError:
    done = CliRunner().invoke(app, list(arguments))
    assert isinstance(done.exception, InputError), done.output
    return done.exception


def test_every_number_has_a_range_and_a_tier():
    found = answer("predict", *ASKED, "--concurrency", "16", "--json")
    for name in ("output_tokens_per_s", "ttft_mean_s", "tpot_mean_s", "e2e_mean_s", "power_w"):
        measure = found[name]
        assert 0 < measure["low"] <= measure["value"] <= measure["high"], name
        assert measure["tier"] in ("fitted", "estimated")
    assert found["regime"] == "fixed_concurrency"


def test_little_closes_in_a_closed_loop():
    """Sequences in flight = requests per second x time of an answer."""
    found = answer(
        "predict", *ASKED, "--concurrency", "16", "--input-tokens", "512", "--output-tokens", "256",
        "--json",
    )  # fmt: skip
    requests_per_s = found["output_tokens_per_s"]["value"] / 256
    assert requests_per_s * found["e2e_mean_s"]["value"] == pytest.approx(16, rel=0.05)


def test_more_users_are_never_fewer_tokens_nor_shorter_steps():
    few = answer("predict", *ASKED, "--concurrency", "4", "--json")
    many = answer("predict", *ASKED, "--concurrency", "64", "--json")
    assert many["output_tokens_per_s"]["value"] > few["output_tokens_per_s"]["value"]
    assert many["tpot_mean_s"]["value"] > few["tpot_mean_s"]["value"]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["predict", *ASKED, "--regime", "dream"], "--regime"),
        (["predict", *ASKED, "--regime", "poisson"], "--rate"),
        (["predict", *ASKED, "--regime", "static_batch"], "--concurrency"),
        (["predict", *ASKED, "--kv-precision", "fp7"], "--kv-precision"),
        (["predict", *ASKED, "--tp", "3"], "--tp"),
        (["scale", "Llama-3.1-8B", "--on", "H100", "--devices", "a,b"], "--devices"),
    ],
)
def test_wrong_requests_say_which_flag(arguments, where):
    assert refusal(*arguments).problems[0].where == where


def test_decode_of_one_waits_for_memory_and_long_prompts_for_arithmetic():
    found = answer("roofline", "Llama-3.1-8B", "--on", "H100", "--input-tokens", "4096", "--json")
    by_tokens = {point["n_tokens"]: point for point in found["points"]}
    assert by_tokens[4096]["limit"] == "compute"
    assert by_tokens[1]["limit"] in ("bandwidth", "host")
    assert by_tokens[1]["intensity_flop_per_byte"] < found["ridge_flop_per_byte"]
    for point in found["points"]:
        assert 0 < point["mfu_frac"] <= 1
        assert 0 < point["mbu_frac"] <= 1


def test_sixty_four_devices_are_not_eight_times_eight():
    """One 100 GbE adapter per server: 3.75 s of transfer against 1.18 s of compute."""
    found = answer(
        "scale", "Llama-3-8B", "--on", "H100", "--mfu", "0.45", "--node-gbit", "100",
        "--devices", "8,64", "--json", "--force",
    )  # fmt: skip
    first, last = found["points"]
    assert first["step_s"] == pytest.approx(1.18, rel=0.02)
    assert last["step_s"] == pytest.approx(3.75, rel=0.05)
    assert last["speedup"] == pytest.approx(2.4, rel=0.1)
    assert found["knee"] == 8
    assert found["states_bytes"] == pytest.approx(128.5e9, rel=0.01)
    assert found["remedies"], "a kinder layout or more adapters come before more devices"


def test_validate_reads_a_table_and_writes_every_prediction(tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text(
        "id,accelerator,n_accelerators,model,precision,engine,engine_version,tp,pp,regime,batch,"
        "input_tokens,output_tokens,measured_output_tokens_per_s\n"
        "a,H100 SXM,1,Llama-3.1-8B,fp8,TensorRT-LLM,1.0,1,1,max_load,,1000,1000,20000\n"
        "b,H100 SXM,1,No-Such-Model,fp8,TensorRT-LLM,1.0,1,1,max_load,,1000,1000,20000\n"
    )
    out = tmp_path / "predictions.csv"
    found = answer("validate", str(table), "--out", str(out), "--json")
    assert (found["rows"], found["covered"]) == (2, 1)
    assert found["refused"][0]["id"] == "b"
    figures = found["metrics"]["output_tokens_per_s"]
    assert set(figures) == {"n", "median_ape", "mape", "p90_ape", "bias", "range_coverage"}
    lines = out.read_text().splitlines()
    assert lines[0].startswith("id,")
    assert lines[0].endswith(",tier")
    assert len(lines) == 2


def test_a_table_of_another_kind_is_refused_with_the_columns(tmp_path):
    table = tmp_path / "other.csv"
    table.write_text("a,b\n1,2\n")
    problem = refusal("validate", str(table)).problems[0]
    assert "input_tokens" in problem.what  # of the table that it is most like
    assert "seq_len" in problem.fix  # of another


def test_predict_takes_a_table_in_place_of_a_model(tmp_path):
    table = tmp_path / "some.csv"
    table.write_text(
        "id;accelerator;n_accelerators;model;engine;regime;batch;input_tokens;output_tokens\n"
        "a;H100;1;Llama-3.1-8B;vllm;fixed_concurrency;8;1024,5;256\n"
    )
    done = CliRunner().invoke(app, ["predict", str(table)])
    header, row = done.stdout.splitlines()
    assert header.startswith("id,")
    assert row.startswith("a,")
    assert CliRunner().invoke(app, ["predict", "Llama-3.1-8B"]).exit_code == 2


RUN = [
    "predict-training", "Llama-3.1-70B", "--on", "H100", "--devices", "64", "--seq-length", "8192",
    "--tp", "4", "--pp", "4", "--vp", "5", "--framework", "NeMo", "--json",
]  # fmt: skip


def test_a_run_has_a_step_a_length_and_a_goodput_by_published_failures():
    found = answer(*RUN, "--tokens", "1e12")
    tokens = 64 * found["tokens_per_s_per_accelerator"]["value"] * found["run_s"]["value"]
    assert tokens == pytest.approx(1e12)
    assert sum(found["parts_s"].values()) == pytest.approx(found["step_s"]["value"], rel=1e-6)
    assert 0 < found["mfu_frac"]["value"] < found["hfu_frac"] + 1e-9
    assert 0.9 < found["goodput"]["goodput_frac"] < 1.0


def test_published_failure_rates_stand_in_for_one_that_is_not_given():
    assumed = answer(*RUN, "--checkpoint-gb-per-s", "20")["goodput"]
    assert not assumed["why_unknown"]
    known = answer(*RUN, "--checkpoint-gb-per-s", "20", "--mtbf-h", "49.5")["goodput"]
    # 64 accelerators that fail once in 50,677 h each stop the job every 792 h, not every 49.5 h.
    assert 0.9 < known["goodput_frac"] < assumed["goodput_frac"] < 1.0


def test_a_slow_network_makes_a_long_run_and_a_small_server_too():
    def run_s(*more):
        return answer(*FAR, *more)["run_s"]["value"]

    fast, slow = (
        run_s("--fabric", "3200 Gbit/s per node"),
        run_s("--fabric", "100 Gbps TCP per node"),
    )
    assert slow > 2 * fast
    assert run_s("--fabric", "3200 Gbit/s per node", "--devices-per-node", "2") < slow
    assert refusal(*FAR, "--fabric", "fast").problems[0].where == "--fabric"


FAR = [
    "predict-training", "Llama-3.1-8B", "--on", "h100-sxm", "--devices", "64", "--sharding", "fsdp",
    "--tokens", "1e12", "--json",
]  # fmt: skip


def test_the_memory_of_a_run_is_that_of_fit_training():
    shape = ["--tp", "4", "--pp", "4", "--vp", "5", "--sharding", "zero1", "--global-batch", "128"]
    run = answer(*RUN[:8], *shape, "--json")
    fit = answer("fit-training", "Llama-3.1-70B", "--on", "64xH100", "--seq-length", "8192", *shape,
                 "--task", "pretrain", "--json")  # fmt: skip
    assert run["fits"] == fit["fits"]
    assert run["peak_bytes"] == fit["peak_bytes"]["value"]
    assert run["headroom_bytes"] == fit["headroom_bytes"]


def test_a_table_of_configurations_is_predicted_whole(tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text(
        "id,accelerator,n_accelerators,model,precision,engine,regime,input_tokens,output_tokens\n"
        "a,H100 SXM,1,Llama-3.1-8B,fp8,vLLM,max_load,1000,1000\n"
    )
    done = CliRunner().invoke(app, ["predict-table", str(table)])
    assert done.exception is None
    header, row = done.stdout.splitlines()
    assert "output_tokens_per_s_high" in header
    assert row.startswith("a,")

"""Refits to a user's runs: planted truths are found, noise is not, nothing else moves."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gpuplan import api
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest, SimulateRequest
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import InputError
from gpuplan.report.prediction.validation import calibrate_sheet
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.inference.user_calibration import read_user_calibration
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.validation.calibrate import calibrate, write_calibration

GIVEN = {"accelerator": "H100", "precision": "bf16", "engine": "vllm", "engine_version": "0.10"}
USERS = (1, 4, 16, 64, 128)
LENGTHS = ((512, 128), (2048, 256))


def row(users, tokens_in, tokens_out, accelerator="H100"):
    return {
        "model": "Qwen/Qwen3-8B", "regime": "fixed_concurrency", "batch": str(users),
        "input_tokens": str(tokens_in), "output_tokens": str(tokens_out), "n_accelerators": "1",
        "tp": "1", **GIVEN, "accelerator": accelerator,
    }  # fmt: skip


def slower(package, **by):
    """A truth in which these constants differ from the package's."""
    fitted = package.constants
    moved = {**fitted.log_value, **{k: fitted.log_value[k] + np.log(v) for k, v in by.items()}}
    return replace(package, constants=replace(fitted, log_value=moved))


def results(truth, *, users=USERS, lengths=LENGTHS, noise=0.01, seed=3):
    """What `vllm bench serve` would write if this were the truth."""
    draw = np.random.default_rng(seed)
    found = []
    for n in users:
        for tokens_in, tokens_out in lengths:
            p = predict_inference(serving_setup(row(n, tokens_in, tokens_out)), calibration=truth)

            def noisy(value):
                return float(value * np.exp(noise * draw.standard_normal()))

            found.append({
                "model_id": "Qwen/Qwen3-8B", "backend": "vllm", "request_rate": "inf",
                "max_concurrency": n, "num_prompts": 10 * n, "completed": 10 * n, "duration": 60.0,
                "total_input_tokens": 10 * n * tokens_in,
                "total_output_tokens": 10 * n * tokens_out,
                "output_throughput": noisy(p.output_tokens_per_s.value),
                "mean_ttft_ms": 1e3 * noisy(p.ttft_mean_s.value),
                "mean_tpot_ms": 1e3 * noisy(p.tpot_mean_s.value),
            })  # fmt: skip
    return found


def written(folder, found, name="runs.json"):
    path = folder / name
    path.write_text("\n".join(json.dumps(one) for one in found))
    return path


@pytest.fixture(scope="module")
def package():
    return inference_calibration()


@pytest.fixture(scope="module")
def planted(package, tmp_path_factory):
    truth = slower(package, slowdown_frac=1.3, host_s=1.5)
    path = written(tmp_path_factory.mktemp("runs"), results(truth))
    return calibrate([path], given=GIVEN)


def test_planted_slowdown_is_found_by_runs_left_out(planted):
    assert planted.verdict == "better"
    for metric in ("tpot_mean_ms", "output_tokens_per_s"):
        assert planted.before[metric].median_ape > 0.12
        assert planted.after[metric].median_ape < 0.05
        assert planted.after[metric].median_ape < 0.4 * planted.before[metric].median_ape


def test_what_moved_is_told_with_its_place(planted):
    top = planted.moved[0]
    assert "vllm" in top.label
    assert "h100" in top.label
    moved = {m.name: m.change_frac for m in planted.moved}
    assert max(moved.get("slowdown_frac", 0), moved.get("host_s", 0)) > 0.05


def test_other_accelerators_stay_as_the_package_has_them(planted, package):
    elsewhere = serving_setup(row(16, 512, 128, accelerator="A100 SXM 80GB"))
    here = serving_setup(row(16, 512, 128))
    old, new = (predict_inference(elsewhere, calibration=c) for c in (package, planted.calibration))
    assert new.tpot_mean_s.value == old.tpot_mean_s.value
    moved = predict_inference(here, calibration=planted.calibration).tpot_mean_s.value
    assert moved > 1.1 * predict_inference(here, calibration=package).tpot_mean_s.value


def test_ranges_of_left_out_runs_hold_most_of_them(planted):
    assert planted.after["tpot_mean_ms"].range_coverage >= 0.7


def test_runs_that_agree_with_the_package_move_little(package, tmp_path):
    outcome = calibrate([written(tmp_path, results(package))], given=GIVEN)
    assert outcome.verdict == "no better"
    assert outcome.after["tpot_mean_ms"].median_ape < 0.04
    setup = serving_setup(row(16, 512, 128))
    old, new = (predict_inference(setup, calibration=c) for c in (package, outcome.calibration))
    assert new.tpot_mean_s.value == pytest.approx(old.tpot_mean_s.value, rel=0.03)


def test_few_runs_claim_nothing_and_move_less(package, planted, tmp_path):
    truth = slower(package, slowdown_frac=1.3, host_s=1.5)
    few = results(truth, users=(16,), lengths=((512, 128),))
    outcome = calibrate([written(tmp_path, few * 5)], given=GIVEN)  # repeats are one condition
    assert outcome.verdict == "too few rows"
    assert outcome.after == {}
    setup = serving_setup(row(16, 512, 128))
    old, one, many = (
        predict_inference(setup, calibration=c).tpot_mean_s.value
        for c in (package, outcome.calibration, planted.calibration)
    )
    assert old < one < many


def test_a_disturbed_run_is_told_and_does_not_count(package, tmp_path):
    found = results(package)
    found[3]["mean_tpot_ms"] *= 6.0
    outcome = calibrate([written(tmp_path, found)], given=GIVEN)
    assert any("runs.json#4: tpot_mean_ms is 6" in line for line in outcome.remarks)
    setup = serving_setup(row(4, 2048, 256))
    old, new = (predict_inference(setup, calibration=c) for c in (package, outcome.calibration))
    assert new.tpot_mean_s.value == pytest.approx(old.tpot_mean_s.value, rel=0.05)


def test_file_holds_the_same_calibration_and_can_be_refitted(planted, tmp_path):
    path = tmp_path / "site.json"
    write_calibration(planted, path)
    loaded = read_user_calibration(path)
    for users in (1, 64):
        setup = serving_setup(row(users, 512, 128))
        kept = predict_inference(setup, calibration=planted.calibration).tpot_mean_s
        read = predict_inference(setup, calibration=loaded).tpot_mean_s
        assert read.value == pytest.approx(kept.value, rel=1e-3)
        assert read.low == pytest.approx(kept.low, rel=1e-3)
    again = calibrate([path])
    assert again.n_rows == planted.n_rows
    assert again.verdict == "better"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"}, {"schema_version": 99}, {"package_calibration": "2020-01"},
        {"deviations": {"slowdown_frac:engine+accelerator": {"a|b": 1e9}}},
        {"deviations": {"no_such:engine": {"a": 0.1}}}, {"deviations": None},
        {"asked": {"here|x|y": "low"}}, {"asked": {"": 0.1}}, {"own": None},
        {"own": [["c", "tpot_mean_ms", 0.1]]}, {"own": [["c", "none", 0.1, 1, 1, 1, 1, 1]]},
        {"own": [["c", "tpot_mean_ms", "far", 1, 1, 1, 1, 1]]},
    ],
)  # fmt: skip
def test_damaged_and_foreign_files_are_refused(planted, tmp_path, change):
    path = tmp_path / "site.json"
    write_calibration(planted, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError) as caught:
        read_user_calibration(path)
    assert all(problem.fix for problem in caught.value.problems)


def test_files_that_cannot_be_read_are_told_together(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("nothing here")
    with pytest.raises(InputError) as caught:
        calibrate([tmp_path / "absent.json", bad], given=GIVEN)
    assert len(caught.value.problems) == 2


def test_unknown_names_are_refused_with_the_reason(package, tmp_path):
    path = written(tmp_path, results(package, users=(4,)))
    with pytest.raises(InputError, match="no such accelerator"):
        calibrate([path], given={**GIVEN, "accelerator": "abacus"})


def test_a_network_that_does_not_generate_is_refused(package, tmp_path):
    path = written(tmp_path, results(package, users=(4,)))
    with pytest.raises(InputError, match="does not generate"):
        calibrate([path], given={**GIVEN, "model": "google-bert/bert-base-uncased"})


def test_a_layout_that_should_not_run_is_told(package, tmp_path):
    path = written(tmp_path, results(package, users=(4,)))
    told = calibrate([path], given={**GIVEN, "tp": "3"}).remarks
    assert any("--tp" in line and "check its conditions" in line for line in told)


def test_no_refit_beats_the_memory(package, tmp_path):
    truth = slower(package, slowdown_frac=0.01, host_s=0.01)
    found = results(truth)
    for one in found:
        one["mean_tpot_ms"] *= 0.2
        one["output_throughput"] *= 5.0
    outcome = calibrate([written(tmp_path, found)], given=GIVEN)
    setup = serving_setup(row(1, 512, 128))
    fastest = predict_inference(setup, calibration=outcome.calibration).tpot_mean_s.value
    weights = 2 * 8.1e9 - 2 * 0.63e9  # bf16, without the embedding that is only looked up
    assert fastest >= weights / setup.accelerator.memory.bytes_per_s


def test_layers_on_the_host_have_no_prediction(tmp_path):
    test = {
        "model_filename": "Meta-Llama-3-8B-Instruct-Q4_K_M.gguf", "gpu_info": "NVIDIA H100 PCIe",
        "n_prompt": 0, "n_gen": 128, "avg_ts": 20.0, "n_gpu_layers": 10, "backends": "CUDA",
    }  # fmt: skip
    path = tmp_path / "bench.json"
    path.write_text(json.dumps([test]))
    with pytest.raises(InputError, match="only 10 of 32 layers"):
        calibrate([path])


def test_sheet_shows_both_errors_and_the_verdict(planted):
    sheet = calibrate_sheet(planted, written="site.json")
    assert "better" in sheet.head
    assert "site.json" in sheet.head
    assert sheet.document["verdict"] == "better"
    assert sheet.document["after_left_out"]["tpot_mean_ms"]["n"] == planted.n_rows
    assert {table.title for table in sheet.tables} >= {"What moved"}
    json.dumps(sheet.document, allow_nan=False)


def test_a_replay_runs_at_the_pace_of_the_site(planted, package, tmp_path):
    """Requests that never meet: the site's share of a step is the prediction's."""
    path = tmp_path / "site.json"
    write_calibration(planted, path)
    alone = requests_of(np.arange(10) * 60.0, np.full(10, 512), np.full(10, 128))

    def tpot_s(calibration):
        replica = ReplicaRequest(calibration=calibration)
        asked = SimulateRequest(engine_version="0.10", scheduler=EngineRequest(replica=replica))
        return api.simulate("Qwen/Qwen3-8B", "H100", alone, asked).statistics.tpot.mean_s

    setup = serving_setup(row(1, 512, 128))
    site, usual = (
        predict_inference(setup, calibration=c).tpot_mean_s.value
        for c in (planted.calibration, package)
    )
    assert tpot_s(str(path)) / tpot_s(None) == pytest.approx(site / usual, rel=0.02)
    assert abs(site / usual - 1.0) > 0.05

"""Any kind of table: rows to predictions, predictions to errors, by hand arithmetic."""

import csv
import io
import json
from pathlib import Path

import pytest

from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, one
from gpuplan.studies.validation.report import (
    GROUPS,
    KINDS,
    errors_by_metric,
    predicted_rows,
    predictions_csv,
    renamed,
    table_kind,
    validate_file,
    validate_package,
    validate_rows,
)

SUBMISSION = {
    "submission_id": "5.1-0001",
    "model_benchmark": "resnet",
    "scenario": "Offline",
    "accelerator": "NVIDIA H100-SXM-80GB",
    "accelerators_total": "8",
    "result": "600000",
    "round": "v4.0",
    "software": "TensorRT",
}


def estimate(value: float, low: float = 0.5, high: float = 2.0) -> Estimate:
    return Estimate(value=value, low=value * low, high=value * high, tier="fitted")


def row(predicted: float, measured: float, name: str = "x", **groups: str) -> PredictedRow:
    found = {"rate": estimate(predicted)}
    return PredictedRow(id=name, groups=groups, predicted=found, measured={"rate": measured})


def test_errors_are_those_of_hand_arithmetic() -> None:
    # predicted / measured - 1: +10 %, -20 %, +200 %; the last lies outside its range.
    found = errors_by_metric([row(110, 100), row(80, 100), row(300, 100)])["rate"]
    assert found.n == 3
    assert found.median_ape == pytest.approx(0.2)
    assert found.mape == pytest.approx((0.1 + 0.2 + 2.0) / 3)
    assert found.p90_ape == pytest.approx(0.2 + 0.8 * (2.0 - 0.2))
    assert found.bias == pytest.approx(0.1)
    assert found.range_coverage == pytest.approx(2 / 3)


def test_figures_without_a_counterpart_are_not_scored() -> None:
    unmeasured = row(110, 0.0)
    unpredicted = PredictedRow(id="y", groups={}, predicted={}, measured={"rate": 5.0})
    assert errors_by_metric([unmeasured, unpredicted]) == {}
    assert errors_by_metric([unmeasured, row(1, 1)])["rate"].n == 1


def test_every_row_is_predicted_or_refused_with_its_reason() -> None:
    def predict(cells: dict[str, str]) -> PredictedRow:
        if cells["model"] == "unknown":
            raise one(InputError, "row", "model", "is unknown", "name another")
        return row(1, 1)

    rows = [{"id": "a", "model": "m"}, {"model": "unknown"}, {"submission_id": "s", "model": "m"}]
    found, refused = predicted_rows(rows, predict)
    assert [one_.id for one_ in found] == ["a", "s"]
    assert [name for name, _ in refused] == ["1"]
    assert "is unknown" in refused[0][1]


def test_errors_of_the_program_are_not_taken_for_refusals() -> None:
    def broken(cells: dict[str, str]) -> PredictedRow:
        raise KeyError(cells["id"])

    with pytest.raises(KeyError):
        predicted_rows([{"id": "a"}], broken)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_recognized_by_its_columns(kind: str) -> None:
    columns = dict.fromkeys(sorted(KINDS[kind].columns), "1")
    assert table_kind([columns], "x") == kind
    assert table_kind([{**columns, "a note": ""}], "x") == kind


def test_an_unknown_table_names_the_nearest_kind_and_what_it_lacks() -> None:
    columns = dict.fromkeys(sorted(KINDS["encoder"].columns - {"latency_avg_ms"}), "1")
    with pytest.raises(InputError) as caught:
        table_kind([columns], "mine.csv")
    (problem,) = caught.value.problems
    assert "most like encoder" in problem.what
    assert "latency_avg_ms" in problem.what
    assert "llm_training" in problem.fix
    with pytest.raises(InputError):
        table_kind([], "empty.csv")


def test_a_report_counts_rows_and_groups_their_errors(tmp_path) -> None:
    other = {**SUBMISSION, "submission_id": "b", "scenario": "MultiStream"}
    report = validate_rows([SUBMISSION, other], where="x")
    assert (report.kind, report.n_rows, report.n_covered) == ("mlperf_inference", 2, 1)
    assert [name for name, _ in report.refused] == ["b"]
    assert set(report.by) == set(GROUPS)
    assert report.by["model"]["resnet"]["result"] == report.metrics["result"]
    assert report.cross is None
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(SUBMISSION))
        writer.writeheader()
        writer.writerows([SUBMISSION, other])
    assert validate_file(path).metrics == report.metrics


def test_predictions_are_written_with_their_ranges() -> None:
    report = validate_rows([{**SUBMISSION, "submission_id": "a, b"}], where="x")
    header, cells = csv.reader(io.StringIO(predictions_csv(report)))
    assert header == ["id", "result", "result_low", "result_high", "tier"]
    assert cells[0] == "a, b"
    value, low, high = map(float, cells[1:4])
    assert low < value < high
    assert cells[4] == report.rows[0].predicted["result"].tier


def test_metrics_that_no_row_measures_are_written_on_demand() -> None:
    two = PredictedRow(
        id="x",
        groups={},
        predicted={"rate": estimate(1), "wait": estimate(2)},
        measured={"rate": 1.0},
    )
    report = validate_rows([SUBMISSION], where="x")
    few = type(report)(
        kind="k", n_rows=1, n_covered=1, metrics={}, by={}, rows=(two,), refused=(), cross=None
    )
    assert "wait" not in predictions_csv(few).splitlines()[0]
    assert "wait_low" in predictions_csv(few, is_whole=True).splitlines()[0]


def test_the_packages_own_splits_are_read_as_stored() -> None:
    for kind, splits in (("llm_inference", {"model", "source"}), ("llm_training", {"model"})):
        stored = KINDS[kind].stored_cross
        assert stored is not None
        found = stored()
        assert splits <= set(found)
        for errors in found["model"].values():
            assert 0 <= errors.median_ape <= errors.p90_ape
            assert 0 <= errors.range_coverage <= 1


def test_a_package_table_is_validated_whole() -> None:
    report = validate_package("llm_training", cross=True)
    assert report.n_covered == report.n_rows > 400
    assert report.metrics["step_s"].median_ape < 0.06
    assert report.cross is not None


def test_columns_of_others_are_read_under_our_names() -> None:
    rows = [{"gpu": "H100", "n_gpus": "8", "seq_len": ""}, {"gpu": "A100", "n_gpus": "4"}]
    columns = ["gpu=accelerator", "n_gpus=n_accelerators", "precision:=bf16"]
    assert renamed(rows, columns, where="t.csv") == [
        {"precision": "bf16", "accelerator": "H100", "n_accelerators": "8", "seq_len": ""},
        {"precision": "bf16", "accelerator": "A100", "n_accelerators": "4"},
    ]
    assert renamed(rows, [], where="t.csv") == rows


def test_a_column_that_is_not_there_and_a_map_that_is_none_are_told_at_once() -> None:
    with pytest.raises(InputError) as found:
        renamed([{"gpu": "H100"}], ["card=accelerator", "gpu"], where="t.csv")
    assert len(found.value.problems) == 2
    assert "gpu" in str(found.value)


@pytest.mark.parametrize("name", ["(none/CPU or other)", "null", "CPU or other", "various"])
def test_a_word_for_anything_else_is_no_processor(name: str, tmp_path: Path) -> None:
    row = {
        "accelerator": "H100", "n_accelerators": "1", "model": "Llama-3.1-8B", "engine": "vLLM",
        "precision": "bf16", "regime": "static_batch", "batch": "1", "input_tokens": "128",
        "output_tokens": "128", "measured_output_tokens_per_s": "40", "id": "a", "source": "s",
        "engine_version": "", "tp": "1", "pp": "1",
    }  # fmt: skip
    path = tmp_path / "t.csv"
    lines = [",".join(each) for each in (row, row.values(), {**row, "accelerator": name}.values())]
    path.write_text("\n".join(lines))
    report = validate_file(path)
    [(_, reason)] = report.refused
    assert "names no one device" in reason
    assert (report.n_rows, report.n_covered) == (2, 1)


EXAMPLE = {
    "framework": "PyTorch", "model": "ConvNets/resnet50v1.5", "hardware": "A100 SXM 80GB",
    "n_gpus": "1", "batch_per_gpu": "256", "value": "2470",
}  # fmt: skip
EXAMPLE_MAP = [
    "value=train_samples_per_s", "hardware=device", "batch_per_gpu=batch_size",
    "n_gpus=n_accelerators", "torch_compile:=no", "param_count_m:=25.6", "img_size:=224",
    "memory_format:=channels_last",
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "condition"),
    [
        (EXAMPLE | {"batch_per_gpu": ""}, "batch_size: the row does not state it"),
        (EXAMPLE | {"batch_per_gpu": "128 (FP32) / 256 (AMP)"}, "batch_size: got '128 (FP32)"),
        (EXAMPLE | {"n_gpus": "8"}, "n_accelerators: got 8"),
        (EXAMPLE | {"model": "Tacotron2"}, "'Tacotron2' is of no known family"),
    ],
)
def test_a_mapped_table_says_of_each_row_what_it_lacks(row: dict[str, str], condition: str) -> None:
    rows = renamed([EXAMPLE, row], EXAMPLE_MAP, where="t")
    report = validate_rows(rows, where="t")
    [(_, reason)] = report.refused
    assert condition in reason
    assert (report.kind, report.n_covered) == ("vision_training", 1)


def test_a_column_that_no_map_gives_is_named() -> None:
    kept = [text for text in EXAMPLE_MAP if not text.startswith("memory_format")]
    report = validate_rows(renamed([EXAMPLE], kept, where="t"), where="t")
    [(_, reason)] = report.refused
    assert "memory_format: there is no such column" in reason


RUN = {
    "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 640,
    "request_rate": "inf", "max_concurrency": 64, "duration": 80.0, "completed": 640,
    "total_input_tokens": 655360, "total_output_tokens": 163840, "output_throughput": 2048.0,
    "mean_ttft_ms": 310.0, "mean_tpot_ms": 30.0,
}  # fmt: skip


def test_what_a_benchmark_tool_wrote_is_judged_with_what_it_does_not_state(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN))
    found = validate_file(path, columns=["accelerator:=H100"])
    assert (found.kind, found.n_rows, found.n_covered) == ("vllm bench serve", 1, 1)
    assert {"ttft_mean_ms", "tpot_mean_ms", "output_tokens_per_s"} <= set(found.metrics)
    by_table = validate_rows(
        [{
            "id": "t", "model": "meta-llama/Llama-3.1-8B-Instruct", "accelerator": "H100",
            "engine": "vLLM", "regime": "fixed_concurrency", "batch": "64",
            "input_tokens": "1024", "output_tokens": "256", "measured_tpot_mean_ms": "30",
        }],
        where="table", is_new=True,
    )  # fmt: skip
    assert found.rows[0].predicted["tpot_mean_ms"] == by_table.rows[0].predicted["tpot_mean_ms"]


def test_a_run_that_lacks_conditions_is_refused_with_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"avg_latency": 1.5, "latencies": [1.5], "percentiles": {}}))
    ((_, reason),) = validate_file(path).refused
    for condition in ("model", "accelerator", "batch", "input_tokens", "output_tokens"):
        assert condition in reason
    assert "--map model:=VALUE" in reason


def test_a_given_model_wins_over_the_name_that_a_server_was_told(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**RUN, "model_id": "our-chat"}))
    given = ["accelerator:=2xH100", "tp:=2"]
    assert validate_file(path, columns=given).n_covered == 0
    found = validate_file(path, columns=[*given, "model:=meta-llama/Llama-3.1-8B-Instruct"])
    assert found.n_covered == 1
    assert any("our-chat" in remark for remark in found.remarks)


@pytest.mark.parametrize("separator", [", ", "\n"])
def test_a_table_may_be_objects_with_columns_of_others(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rows = [{
        "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100", "engine": "vLLM",
        "batch": users, "regime": "fixed_concurrency", "input_tokens": 1024, "output_tokens": 256,
        "tpot": 9.5, "request_rate_per_s": None,
    } for users in (8, 32)]  # fmt: skip
    text = separator.join(json.dumps(row) for row in rows)
    path.write_text(f"[{text}]" if separator == ", " else text)
    found = validate_file(path, columns=["gpu=accelerator", "tpot=measured_tpot_mean_ms"])
    assert (found.kind, found.n_covered) == ("llm_inference", 2)
    assert [row.measured["tpot_mean_ms"] for row in found.rows] == [9.5, 9.5]
    quick, busy = (row.predicted["tpot_mean_ms"].value for row in found.rows)
    assert quick < busy


def test_a_flag_of_a_run_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN))
    with pytest.raises(InputError, match="gpus"):
        validate_file(path, columns=["gpus:=8"])


TRAINED = {
    "id": "t-1", "model": "meta-llama/Llama-3.1-8B", "accelerator": "H100", "n_accelerators": "8",
    "seq_len": "8192", "global_batch": "16", "micro_batch": "2", "framework": "torchtitan",
    "measured_memory_gib": "50",
}  # fmt: skip


def test_memory_of_training_is_predicted_with_its_range() -> None:
    (row,) = validate_rows([TRAINED], where="t", is_new=True).rows
    peak = row.predicted["memory_gib"]
    assert peak.low < peak.value < peak.high
    assert row.measured["memory_gib"] == 50.0
    (less,) = validate_rows([{**TRAINED, "micro_batch": "1"}], where="t", is_new=True).rows
    assert less.predicted["memory_gib"].value < peak.value  # fewer activations


@pytest.mark.parametrize("condition", ["seq_len", "micro_batch"])
def test_memory_without_what_decides_it_is_refused_and_the_step_is_not(condition: str) -> None:
    found = validate_rows([{**TRAINED, condition: ""}], where="t", is_new=True)
    assert found.n_covered == 1
    assert "memory_gib" not in found.metrics
    assert condition in found.refused[0][1]


def test_fine_tuning_tables_are_read_by_method() -> None:
    row = {
        "project": "litgpt", "model": "Llama-2-7b", "method": "Finetuning with LoRA on 1 GPU",
        "quantization": "bnb.nf4", "gpu": "A100 40GB", "n_gpus": "1", "seq_len": "512",
        "micro_batch": "1", "peak_mem_gb": "14.14", "mem_unit": "GB",
    }  # fmt: skip
    rows = [row, {**row, "quantization": ""}, {**row, "method": "Adapter"}]
    found = validate_rows(rows, where="t", is_new=True)
    assert (found.kind, found.n_covered) == ("fine-tuning", 2)
    narrow, wide = (r.predicted["memory_gib"].value for r in found.rows)
    assert 0 < wide - narrow == pytest.approx(9.0, rel=0.35)  # of 13.5 GB of weights, 4 bits stay
    assert found.rows[0].measured["memory_gib"] == pytest.approx(14.14e9 / 2**30, rel=1e-4)
    assert "not modelled" in found.refused[0][1]

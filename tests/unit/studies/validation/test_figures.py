"""Figures that no hardware allows, or that their own row contradicts, are rejected."""

import pytest

from gpuplan.studies.validation.figures import rejected_figures
from gpuplan.studies.validation.inference_table import observations, read_table
from gpuplan.studies.validation.report import validate_rows

ROW = {
    "id": "a", "source": "s", "accelerator": "H100 SXM", "n_accelerators": "2", "tp": "2",
    "pp": "1", "model": "Llama-2-70B", "precision": "fp16", "engine": "vLLM",
    "engine_version": "0.11.0", "regime": "static_batch", "batch": "1", "input_tokens": "512",
    "output_tokens": "2048",
}  # fmt: skip
WEIGHTS_S = 2 * 68.98e9 / 2 / 3.35e12  # 16 bits of every parameter on two boards, read once


def rejected(**figures: float) -> dict[str, str]:
    row = ROW | {f"measured_{name}": str(value) for name, value in figures.items()}
    return rejected_figures(row)


@pytest.mark.parametrize(("ratio", "is_rejected"), [(0.6, True), (0.9, False), (1.2, False)])
def test_a_step_is_no_shorter_than_reading_the_weights(ratio: float, is_rejected: bool) -> None:
    found = rejected(tpot_mean_ms=1e3 * WEIGHTS_S * ratio, e2e_s=2100 * WEIGHTS_S * ratio)
    assert set(found) == ({"tpot_mean_ms", "e2e_s"} if is_rejected else set())


def test_the_reason_names_the_figure_the_share_and_the_device() -> None:
    found = rejected(output_tokens_per_s=2.0 / WEIGHTS_S)["output_tokens_per_s"]
    assert found.startswith(f"output_tokens_per_s {2.0 / WEIGHTS_S:g} is 20")
    assert "H100" in found


def test_e2e_without_room_for_its_own_steps_ended_early() -> None:
    found = rejected(ttft_mean_ms=80.0, tpot_mean_ms=37.0, e2e_s=60.0)
    assert set(found) == {"e2e_s"}
    assert "2047 TPOT" in found["e2e_s"]
    assert rejected(ttft_mean_ms=80.0, tpot_mean_ms=37.0, e2e_s=75.9) == {}


def test_lengths_that_are_not_stated_rule_nothing_out() -> None:
    # 64 contexts of 4,024 tokens are 34 GB and the weights 15; of 1,024 tokens 9 GB.
    alone = {"model": "Llama-3.1-8B", "n_accelerators": "1", "tp": "1", "batch": "64"}
    long = ROW | alone | {"input_tokens": "3000", "measured_tpot_mean_ms": "8"}
    assert rejected_figures(long)
    assert rejected_figures(long | {"input_tokens": "", "layout_note": "task=video-chat"}) == {}


def test_stages_of_one_prompt_may_work_at_once() -> None:
    row = ROW | {"n_accelerators": "4", "tp": "1", "pp": "4", "measured_ttft_mean_ms": "30"}
    # One stage after the other, 70 Tflop would take 71 ms at 989 Tflop/s.
    assert rejected_figures(row) == {}
    assert set(rejected_figures(row | {"measured_ttft_mean_ms": "10"})) == {"ttft_mean_ms"}


def test_drafts_of_unknown_length_rule_nothing_out() -> None:
    fast = ROW | {"measured_tpot_mean_ms": "5"}
    assert rejected_figures(fast)
    assert rejected_figures(fast | {"flag": "may use multi-token prediction"}) == {}


def test_fits_and_validation_leave_a_rejected_figure_out_and_keep_the_row() -> None:
    row = ROW | {"measured_tpot_mean_ms": "37", "measured_e2e_s": "2"}
    table = read_table([row], is_new=True)
    assert observations(table).metric.tolist() == ["tpot_mean_ms"]
    [(name, why)] = table.refused
    report = validate_rows([row], where="t", is_new=True)
    assert report.refused == ((name, why),)
    assert (report.n_covered, set(report.metrics)) == (1, {"tpot_mean_ms"})

"""Rows of training tables beside their predictions: one step, three figures, one range."""

import pytest

from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.errors import InputError
from gpuplan.performance.training.basis import peak_flop_per_s
from gpuplan.performance.training.step import published_flop
from gpuplan.studies.training.cases import case_of
from gpuplan.studies.validation.training import COUNTED, predicted_training

JOB = {
    "id": "mine",
    "source": "dgxc",
    "framework": "NeMo",
    "model": "Llama-3.1-8B",
    "accelerator": "H100",
    "n_accelerators": "8",
    "precision": "bf16",
    "seq_len": "8192",
    "global_batch": "128",
    "micro_batch": "1",
    "measured_step_s": "12.5",
    "measured_mfu_pct": "0",
}


def test_step_and_rate_are_two_views_of_one_time() -> None:
    found = predicted_training(JOB)
    step, rate = found.predicted["step_s"], found.predicted["tokens_per_s_per_accelerator"]
    tokens = 128 * 8192 / 8
    assert step.value * rate.value == pytest.approx(tokens)
    assert step.high * rate.low == pytest.approx(tokens)
    assert step.low * rate.high == pytest.approx(tokens)


def test_utilization_is_published_flop_over_peak() -> None:
    found = predicted_training(JOB)
    setup = case_of(TrainingRow(JOB), read_catalog()).configuration
    flop = published_flop(setup.model, setup.setup)
    peak = peak_flop_per_s(setup.accelerator, "bf16")
    rate = found.predicted["tokens_per_s_per_accelerator"].value
    assert found.predicted["mfu_pct"].value == pytest.approx(100 * rate * flop / peak)


def test_a_batch_that_does_not_divide_is_predicted_for_all_of_it() -> None:
    whole = predicted_training({**JOB, "global_batch": "128"}).predicted["step_s"].value
    odd = predicted_training({**JOB, "global_batch": "132"}).predicted["step_s"].value
    assert odd == pytest.approx(whole * 132 / 128, rel=0.05)


def test_figures_of_zero_are_not_measured() -> None:
    found = predicted_training(JOB)
    assert found.measured == {"step_s": 12.5}
    assert found.groups == {
        "source": "dgxc",
        "model": "Llama-3.1-8B",
        "accelerator": "H100",
        "engine": "NeMo",
        "regime": "pre-training",
    }
    assert predicted_training({**JOB, "task": "LoRA"}).groups["regime"] == "fine-tuning"


@pytest.mark.parametrize("column", COUNTED)
def test_every_count_must_be_a_number(column: str) -> None:
    with pytest.raises(InputError) as caught:
        predicted_training({**JOB, column: "many"})
    assert column in {problem.where for problem in caught.value.problems}

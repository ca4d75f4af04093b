"""A single configuration: ranges, assumptions, and what a user's own runs change."""

import pytest

from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.errors import InputError
from gpuplan.studies.training.predict import counted, predict_training
from gpuplan.studies.validation.report import predicted_rows
from gpuplan.studies.validation.training import TRAINING_COLUMNS, predicted_training

JOB = {
    "id": "mine", "source": "our cluster", "framework": "NeMo", "date": "2025-06",
    "model": "Llama-3.1-70B", "accelerator": "H100", "n_accelerators": "64", "precision": "bf16",
    "seq_len": "8192", "global_batch": "128", "micro_batch": "1", "tp": "4", "pp": "4", "vp": "5",
}  # fmt: skip


def test_forecast_has_a_range_and_agrees_with_itself():
    found = predict_training(JOB)
    assert found.step_s.low < found.step_s.value < found.step_s.high
    rate = found.tokens_per_s_per_accelerator
    assert rate.value * 64 * found.step_s.value == pytest.approx(128 * 8192)
    assert rate.low * 64 * found.step_s.high == pytest.approx(128 * 8192)
    assert 0.35 < found.mfu_frac.value < 0.6
    assert found.step_s.tier == "fitted"


def test_what_is_new_widens_the_range():
    def width(**changed):
        found = predict_training(JOB | changed).step_s
        return found.high / found.low

    known = width(source="dgxc")
    assert width() > known
    assert width(accelerator="Gaudi 2", source="dgxc") > known
    assert width(seq_len="", source="dgxc") > 1.4 * known


def test_what_is_assumed_is_told():
    told = {assumption.what for assumption in predict_training(JOB | {"seq_len": ""}).assumptions}
    assert "seq_len" in told


def test_unknown_accelerator_is_refused():
    with pytest.raises(InputError):
        predict_training(JOB | {"accelerator": "no such board"})


def test_tables_are_read_whole_and_every_row_is_told():
    good = JOB | {"measured_step_s": "10"}
    bad = JOB | {"id": "theirs", "model": "nobody's network"}
    rows, refused = predicted_rows([good, bad], predicted_training)
    assert [row.id for row in rows] == ["mine"]
    assert [name for name, _ in refused] == ["theirs"]
    assert rows[0].measured == {"step_s": 10.0}
    assert rows[0].groups["regime"] == "pre-training"
    assert {"step_s", "tokens_per_s_per_accelerator", "mfu_pct"} == set(rows[0].predicted)


def test_table_columns_tell_training_from_serving():
    assert set(TrainingRow(JOB).degrees) == {"tp", "pp", "vp"}
    assert {*JOB, "model"} >= TRAINING_COLUMNS


def test_conditions_that_are_no_numbers_refuse_their_row_alone():
    good = {**JOB, "id": "a", "measured_step_s": "10"}
    rows = [good, {**good, "id": "b", "seq_len": "8k"}, {**good, "id": "c", "global_batch": "~64"}]
    found, refused = predicted_rows(rows, predicted_training)
    assert [row.id for row in found] == ["a"]
    assert {name for name, _ in refused} == {"b", "c"}
    assert "seq_len" in dict(refused)["b"]


def test_thousands_and_cells_that_say_nothing_are_read():
    plain = {**JOB, "id": "a", "global_batch": "1024", "cp": ""}
    spoken = {**plain, "global_batch": "1,024", "cp": "n/a"}
    (one, other), refused = predicted_rows([plain, spoken], predicted_training)
    assert not refused
    assert one.predicted["step_s"].value == other.predicted["step_s"].value


@pytest.mark.parametrize(
    ("accelerator", "stated", "n"),
    [("H100", "", 8), ("16xH100", "", 16), ("16xH100", "32", 32), ("p5.48xlarge", "", 8)],
)
def test_the_name_of_an_accelerator_may_count_them(accelerator, stated, n):
    """`--on 16xH100` was predicted on eight."""
    found = counted({"accelerator": accelerator, "n_accelerators": stated})
    assert int(found["n_accelerators"]) == n


def test_two_numbers_that_contradict_each_other_are_refused():
    with pytest.raises(InputError, match="multiple"):
        counted({"accelerator": "16xH100", "n_accelerators": "8"})

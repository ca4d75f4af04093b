"""Two tables of runs: paired by condition, judged by direction, with versions that changed."""

import pytest

from gpuplan.errors import InputError, ViolationError
from gpuplan.studies.measured.compare import compare_runs, refuse_regression

HEAD = "model,concurrency,driver,measured_output_tokens_per_s,measured_ttft_mean_ms\n"


def runs(folder, before, after, tolerance=0.05):
    for name, rows in (("a.csv", before), ("b.csv", after)):
        (folder / name).write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return compare_runs(folder / "a.csv", folder / "b.csv", tolerance)


def test_rows_are_paired_by_condition_not_by_place(tmp_path):
    found = runs(
        tmp_path, ["m,8,570,100,50", "m,16,570,180,60"], ["m,16,580,180,66", "m,8,580,99,50"]
    )
    changes = {(row.condition, row.metric): row for row in found.rows}
    assert changes["concurrency=8 model=m", "output_tokens_per_s"].change_frac == pytest.approx(
        -0.01
    )
    slower = changes["concurrency=16 model=m", "ttft_mean_ms"]
    assert slower.is_worse
    assert slower.change_frac == pytest.approx(0.1)
    assert [(x.what, x.before, x.after) for x in found.fingerprint] == [("driver", "570", "580")]
    with pytest.raises(ViolationError, match="driver 570 to 580"):
        refuse_regression(found)


def test_faster_is_never_a_regression(tmp_path):
    found = runs(tmp_path, ["m,8,570,100,50"], ["m,8,570,150,20"])
    assert not found.is_regression
    refuse_regression(found)


def test_repetitions_are_averaged(tmp_path):
    found = runs(tmp_path, ["m,8,570,90,", "m,8,570,110,"], ["m,8,570,100,"])
    (row,) = found.rows
    assert (row.n_before, row.n_after) == (100.0, 100.0)


def test_the_tolerance_is_the_edge(tmp_path):
    assert not runs(tmp_path, ["m,8,5,100,"], ["m,8,5,90,"], 0.10).is_regression
    assert runs(tmp_path, ["m,8,5,100,"], ["m,8,5,90,"], 0.09).is_regression


def test_conditions_of_one_run_are_named(tmp_path):
    found = runs(tmp_path, ["m,8,5,100,", "m,9,5,100,"], ["m,8,5,100,"])
    assert found.unpaired == ("concurrency=9 model=m",)


@pytest.mark.parametrize("after", [["m,9,5,100,"], ["m,8,5,fast,"]])
def test_tables_that_share_nothing_or_hold_words_are_wrong_input(tmp_path, after):
    with pytest.raises(InputError):
        runs(tmp_path, ["m,8,5,100,"], after)

"""Serving predictions against the package's own table of published measurements."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from gpuplan.calibration.fit import columns, row_values, start_from
from gpuplan.calibration.inference.eras import version_pair
from gpuplan.calibration.inference.labels import nearest_era
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.tables import read_rows
from gpuplan.studies.inference.predict import metric_estimates, predict_inference
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.validation.fit_inference import fit_study, study
from gpuplan.studies.validation.inference_table import (
    benchmark_of,
    log_predictions,
    read_table,
    simulated,
)
from gpuplan.studies.validation.report import predictions_csv, table_kind, validate_rows

BUDGETS = tomllib.loads((Path(__file__).parent / "llm_inference_budgets.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return [dict(row) for row in read_rows("llm_inference.csv")]


@pytest.fixture(scope="module")
def report(rows):
    return validate_rows(rows[::3], where="own table")


@pytest.fixture(scope="module")
def whole_study(rows):
    return study(read_table(rows))


def test_every_row_of_the_table_is_predicted(report, rows):
    assert report.n_covered == report.n_rows == len(rows[::3])
    assert all(row.predicted for row in report.rows)


@pytest.mark.parametrize(
    ("regime", "metric"),
    [(regime, metric) for regime, found in BUDGETS["fitted"].items() for metric in found],
)
def test_median_errors_keep_their_budget(report, regime, metric):
    found = report.by["regime"][regime][metric]
    assert found.median_ape <= BUDGETS["fitted"][regime][metric], found


@pytest.mark.parametrize("regime", ["max_load", "static_batch", "fixed_concurrency"])
def test_ranges_of_sites_never_seen_hold_most_fitted_rows(report, regime):
    for metric, found in report.by["regime"][regime].items():
        if found.n >= 100:
            assert found.range_coverage >= 0.8, (metric, found)


def test_ranges_hold_their_value(report):
    for row in report.rows:
        for estimate in row.predicted.values():
            assert 0 < estimate.low <= estimate.value <= estimate.high


def test_stored_fit_is_what_the_tool_makes(whole_study):
    everything = np.ones(len(whole_study.observed.row), dtype=bool)
    first = fit_study(whole_study, everything).constants
    again = fit_study(whole_study, everything, near=first).constants
    stored = inference_calibration().constants
    assert again.n_rows == stored.n_rows
    for name, value in stored.log_value.items():
        assert again.log_value[name] == pytest.approx(value, abs=0.02), name


def test_columns_and_single_predictions_agree(rows):
    """Two ways to the same number: the fit's columns and the planner's single prediction."""
    of, known = study(read_table(rows[::97])), inference_calibration()
    eras = known.known["era"]
    labels = [{**row, "era": nearest_era(row["era"], eras)} for row in of.table.labels]
    cols = columns(known.constants.constants, labels)
    values = row_values(cols, start_from(cols, known.constants))
    logs = log_predictions(of.groups, values, simulated(of.table, values), len(of.observed.row))
    for i, metric, found in zip(of.observed.row, of.observed.metric.tolist(), logs, strict=True):
        if metric.endswith("p99_ms"):
            continue
        row = of.table.rows[i]
        one = predict_inference(serving_setup(row), benchmark=benchmark_of(row))
        value = metric_estimates(one)[metric].value
        assert np.log(value) == pytest.approx(found, abs=1e-9), (row["id"], metric)


def test_versions_left_out_keep_their_budget(whole_study):
    """One recent version as a stand-in for those that do not exist yet."""
    engines = [setup.engine for setup in whole_study.table.setups]
    is_out = [e.name == "trtllm" and version_pair(e.name, e.version) == (0, 20) for e in engines]
    out = np.array(is_out)[whole_study.observed.row]
    residual = fit_study(whole_study, ~out).residual[out]
    budget = BUDGETS["version_left_out"]["max_load"]["output_tokens_per_s"]
    assert np.median(np.abs(np.expm1(residual))) <= budget


def test_predictions_are_written_with_their_ranges(report):
    lines = predictions_csv(report).splitlines()
    header = lines[0].split(",")
    assert header[0] == "id"
    assert header[-1] == "tier"
    assert {"output_tokens_per_s", "output_tokens_per_s_low", "tpot_mean_ms_high"} <= set(header)
    assert len(lines) == report.n_covered + 1


def test_tables_of_no_known_kind_are_refused():
    with pytest.raises(Exception, match="columns"):
        table_kind([{"a": "1"}], "x.csv")

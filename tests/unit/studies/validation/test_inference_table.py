"""Serving rows as columns: every figure once, every row in its regime, refusals with reasons."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.tables import read_rows
from gpuplan.performance.kernels.step import StepConstants
from gpuplan.studies.inference.predict import metric_estimates, predict_inference
from gpuplan.studies.validation.inference_table import (
    METRICS,
    benchmark_of,
    constants_of,
    groups,
    log_predictions,
    not_simulated,
    observations,
    read_table,
    simulated,
)


def first(regime: str, **needed: str) -> dict[str, str]:
    return next(
        dict(row)
        for row in read_rows("llm_inference.csv")
        if row["regime"] == regime and all(row[key] for key in needed.values())
    )


@pytest.fixture(scope="module")
def table():
    rows = [first("max_load"), first("static_batch"), first("fixed_concurrency")]
    return read_table(rows)


def values_of(table) -> dict[str, np.ndarray]:
    fitted = inference_calibration().constants
    rows = [fitted.values(labels) for labels in table.labels]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_columns_of_a_table_are_aligned(table) -> None:
    assert not table.refused
    lengths = {len(column) for column in table[:-1]}
    assert lengths == {3}
    assert [setup.load.regime for setup in table.setups] == [
        "max_load",
        "static_batch",
        "fixed_concurrency",
    ]


def test_rows_that_name_nothing_known_are_refused_with_the_reason() -> None:
    good = first("max_load")
    found = read_table([good, {**good, "id": "bad", "model": "no such model"}])
    assert len(found.rows) == 1
    ((name, reason),) = found.refused
    assert name == "bad"
    assert "no such model" in reason


def test_a_table_without_some_rows_keeps_their_reasons(table) -> None:
    fewer = table.without({1: "not measured whole"})
    assert [row["id"] for row in fewer.rows] == [table.rows[0]["id"], table.rows[2]["id"]]
    assert fewer.setups == [table.setups[0], table.setups[2]]
    assert fewer.refused == [(table.rows[1]["id"], "not measured whole")]
    assert len(fewer.rows) + len(fewer.refused) == len(table.rows)


def test_every_positive_figure_is_observed_once() -> None:
    row = first("max_load")
    for metric in METRICS:
        row[f"measured_{metric}"] = ""
    row |= {"measured_output_tokens_per_s": "100", "measured_e2e_s": "0"}
    row["measured_ttft_mean_ms"] = "5"
    observed = observations(read_table([row]))
    assert sorted(observed.metric.tolist()) == ["output_tokens_per_s", "ttft_mean_ms"]
    assert sorted(np.exp(observed.log_value)) == pytest.approx([5.0, 100.0])
    assert observed.row.tolist() == [0, 0]


def test_groups_share_out_rows_and_observations(table) -> None:
    observed = observations(table)
    found = groups(table, observed)
    assert sorted(i for group in found for i in group.rows.tolist()) == [0, 1, 2]
    at = sorted(i for group in found for seen, _, _ in group.reads for i in seen.tolist())
    assert at == list(range(len(observed.row)))
    for group in found:
        for seen, place, metric in group.reads:
            assert (observed.metric[seen] == metric).all()
            assert (group.rows[place] == observed.row[seen]).all()


def test_constants_of_one_row_are_those_of_its_column(table) -> None:
    values = values_of(table)
    columns, _ = constants_of(values, np.array([0, 2]))
    single, _ = constants_of(values, 2)
    for name in StepConstants._fields:
        assert getattr(columns, name)[1] == getattr(single, name) == values[name][2]


def test_columns_predict_what_single_rows_predict(table) -> None:
    observed, values = observations(table), values_of(table)
    runs = simulated(table, values)
    logs = log_predictions(groups(table, observed), values, runs, len(observed.row))
    for i, metric, log in zip(observed.row, observed.metric, logs, strict=True):
        setup, row = table.setups[i], table.rows[i]
        single = metric_estimates(predict_inference(setup, benchmark=benchmark_of(row)))
        if str(metric) not in ("ttft_p99_ms", "tpot_p99_ms"):
            assert np.exp(log) == pytest.approx(single[str(metric)].value, rel=0.02), metric


def test_only_loops_and_rates_are_simulated(table) -> None:
    runs, still = simulated(table, values_of(table)), not_simulated(3)
    assert runs.later_s[:2].tolist() == still.later_s[:2].tolist()
    assert runs.later_s[2] != still.later_s[2]
    assert (runs.run_ratio == 1).all()


@pytest.mark.parametrize(
    ("source", "suite"),
    [("mlperf-v5.1", "mlperf"), ("inferencex/nvidia", "inferencex"), ("dstack", ""), ("", "")],
)
def test_suites_are_recognized_by_their_source(source: str, suite: str) -> None:
    assert benchmark_of({"source": source}) == suite


def test_throughput_counts_every_replica(table) -> None:
    observed, values = observations(table), values_of(table)
    setups = [replace(table.setups[0], n_replicas=2.0), *table.setups[1:]]
    more = table._replace(setups=setups)
    runs = not_simulated(3)
    one = log_predictions(groups(table, observed), values, runs, len(observed.row))
    two = log_predictions(groups(more, observed), values, runs, len(observed.row))
    at = (observed.row == 0) & (observed.metric == "output_tokens_per_s")
    ratio = 2.0 / table.setups[0].n_replicas
    assert np.exp(two - one)[at] == pytest.approx(ratio)
    assert np.exp(two - one)[observed.row > 0] == pytest.approx(1.0)

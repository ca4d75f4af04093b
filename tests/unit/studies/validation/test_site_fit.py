"""Refit to a site: what rows weigh, what counts as an outlier, and scores by hand."""

from math import log

import numpy as np
import pytest

from gpuplan.calibration.fit import NOISE_LOG
from gpuplan.calibration.inference.site import OwnMiss, measured_here, requested_width
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.calibration.constants import HERE
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.validation.fit_inference import study
from gpuplan.studies.validation.inference_table import read_table
from gpuplan.studies.validation.site_fit import (
    LEAST_OUTLIER_LOG,
    ROW_LOG_SD,
    conditions,
    own_figures,
    own_misses,
    pooled_ape,
    refit,
    refitted,
    site_of,
    weights,
    widened,
)

ROW = {
    "source": "user: table",
    "accelerator": "H100",
    "n_accelerators": "1",
    "model": "Qwen/Qwen3-8B",
    "precision": "bf16",
    "engine": "vllm",
    "engine_version": "0.10",
    "tp": "1",
    "regime": "static_batch",
    "input_tokens": "512",
    "output_tokens": "128",
}


def rows(*batches: int) -> list[dict[str, str]]:
    return [
        {**ROW, "id": f"r{i}", "batch": str(n), "measured_output_tokens_per_s": str(100 * n),
         "measured_tpot_mean_ms": "9.5"}
        for i, n in enumerate(batches)
    ]  # fmt: skip


def of(*batches: int):
    return study(read_table(rows(*batches)))


def predicted(
    value: float, measured: float, *, low: float = 0.9, high: float = 1.1
) -> PredictedRow:
    found = Estimate(value=value, low=low * value, high=high * value, tier="fitted")
    return PredictedRow(
        id="x",
        groups={},
        predicted={"tpot_mean_ms": found, "ttft_p99_ms": found},
        measured={"tpot_mean_ms": measured, "ttft_p99_ms": 100 * measured},
    )


def test_repeats_share_their_conditions() -> None:
    names = conditions(of(1, 4, 4, 8))
    assert names[1] == names[2]
    assert len(set(names)) == 3


def test_a_figure_counts_once_and_repeats_as_the_root_of_their_number() -> None:
    found = of(1, 4, 4)
    weight = weights(found, np.ones(len(found.observed.row), dtype=bool))
    by_row = [float(weight[found.observed.row == i].sum()) for i in range(3)]
    one = (NOISE_LOG / ROW_LOG_SD) ** 2
    assert by_row[0] == pytest.approx(2.0 * one)  # two figures
    assert by_row[1] == by_row[2] == pytest.approx(2.0 * one / 2**0.5)


def test_one_row_of_a_site_far_off_is_followed_and_not_doubted() -> None:
    package, table = inference_calibration(), rows(8)
    table[0] |= {"measured_output_tokens_per_s": "80", "measured_tpot_mean_ms": "95"}
    found = study(read_table(table))
    site = site_of(found, package)
    before = np.array([run.n_halves for run in own_figures(site)[0]])
    after = refit(site, np.ones(len(found.observed.row), dtype=bool)).fit.residual
    assert np.abs(before).min() > 2.0
    assert np.abs(after).max() < 0.25 * log(10)


def test_observations_that_are_not_used_weigh_nothing() -> None:
    found = of(1, 4)
    used = found.observed.row == 0
    weight = weights(found, used)
    assert (weight[~used] == 0).all()
    assert (weight[used] > 0).all()


def test_a_refit_moves_towards_the_rows_and_only_as_far_as_they_are_many() -> None:
    package = inference_calibration()
    found = of(1, 2, 4, 8, 16, 32)
    site = site_of(found, package)
    everything = np.ones(len(found.observed.row), dtype=bool)
    whole = refit(site, everything)
    few = refit(site, found.observed.row < 1)
    assert np.abs(whole.fit.residual).mean() < np.abs(few.fit.residual).mean()
    assert whole.deviations
    moved = refitted(site, whole, version="test")
    assert moved.version == "test"
    assert set(package.constants.deviation) < set(moved.constants.deviation)


def test_a_figure_that_the_others_contradict_is_an_outlier() -> None:
    table = rows(*(2**i for i in range(8)))
    package = inference_calibration()
    made_up = study(read_table(table))
    found = refit(site_of(made_up, package), np.ones(len(made_up.observed.row), dtype=bool))
    truth = np.exp(found.fit.residual + made_up.observed.log_value)
    for i, metric, value in zip(made_up.observed.row, made_up.observed.metric, truth, strict=True):
        table[i][f"measured_{metric}"] = f"{value:.6g}"
    honest = study(read_table(table))
    used = np.ones(len(honest.observed.row), dtype=bool)
    assert not refit(site_of(honest, package), used).outliers.any()
    table[3]["measured_tpot_mean_ms"] = f"{8 * float(table[3]['measured_tpot_mean_ms']):.6g}"
    found = study(read_table(table))
    again = refit(site_of(found, package), np.ones(len(found.observed.row), dtype=bool))
    (at,) = np.flatnonzero(again.outliers)
    assert (found.observed.row[at], found.observed.metric[at]) == (3, "tpot_mean_ms")
    assert again.fit.residual[at] < -LEAST_OUTLIER_LOG


def test_own_runs_make_a_configuration_measured_here() -> None:
    package, found = inference_calibration(), of(1, 2, 4)
    own = [run for of_row in own_figures(site_of(found, package)) for run in of_row]
    assert {run.configuration.split("|")[1] for run in own} == {"h100-sxm"}
    here = measured_here(package, [run._replace(n_halves=0.2) for run in own])
    old, new = (predict_inference(found.table.setups[0], calibration=c) for c in (package, here))
    assert old.novelty.kind != HERE
    assert new.novelty.kind == HERE
    assert new.tpot_mean_s.value == old.tpot_mean_s.value
    assert new.tpot_mean_s.high < old.tpot_mean_s.high
    assert new.ttft_mean_s.high == old.ttft_mean_s.high  # no run showed a first token


def test_scores_are_those_of_hand_arithmetic() -> None:
    some = [predicted(110, 100), predicted(100, 100), predicted(150, 100)]
    # Tails have no constants: the pooled error is of means alone, +10, 0 and +50 %.
    assert pooled_ape(some) == pytest.approx(0.1)
    assert pooled_ape([]) == 0.0


def test_ranges_of_held_out_rows_hold_the_spread_of_the_other_conditions() -> None:
    found = of(*range(1, 9))
    held_out = [predicted(100 * 1.5 ** (i % 2), 100) for i in range(8)]
    missed = own_misses(found, held_out, inference_calibration())
    wide = widened(found, held_out, missed)
    before, after = held_out[0].predicted["tpot_mean_ms"], wide[0].predicted["tpot_mean_ms"]
    assert after.low < before.low / 1.3  # half of the others are off by a factor of 1.5
    assert after.high > before.high
    assert after.value == before.value
    few = of(1, 2)
    assert widened(few, held_out[:2], missed[:2]) == held_out[:2]


def test_few_own_figures_ask_for_no_width_of_their_own() -> None:
    some = [OwnMiss("c", "tpot_mean_ms", 0.4, 0.2)] * 5
    assert requested_width(some) == {}
    assert requested_width([*some, some[0]])["c", "tpot_mean_ms"] == pytest.approx(np.log(2.0))

"""The ledger of first predictions: made before their rows joined a fit, grown, never edited."""

import csv
import hashlib
import re
import sys
from math import log
from pathlib import Path

import numpy as np
import pytest

from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.calibration.constants import AT_LIMIT, SEEN, range_keys

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from ledger import later_figures, later_lines, possible_figures
from validation_decisions import TARGETS_MS, stated
from validation_ranges import (
    figures,
    held_out_recipes,
    held_out_rules,
    narrowed,
    probed_sites,
    probes,
)
from validation_ranges import interval_score as scored

FOLDER = Path(__file__).parent / "never_seen"
KEPT = ("output_tokens_per_s", "tpot_mean_ms", "ttft_mean_ms")
ENDS = ("low", "high")
# A new batch of rows adds a part; a part that differs is no first prediction any more.
PARTS = {
    "first_predictions": "ef250d51fb9a713e",
    "first_predictions_training": "b131d547f12a16ec",
    "first_predictions_later": "806e4c61fac2eb90",
}


@pytest.mark.parametrize("part", PARTS)
def test_no_part_was_edited(part):
    found = hashlib.sha256((FOLDER / f"{part}.csv").read_bytes()).hexdigest()
    assert found[:16] == PARTS[part]


def test_every_part_is_held():
    assert {path.stem for path in FOLDER.glob("first_predictions*.csv")} == set(PARTS)


def test_later_figures_name_cell_group_and_novelty():
    with (FOLDER / "first_predictions_later.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6103
    assert len({(row["id"], row["metric"]) for row in rows}) == len(rows)
    assert all(row["cell"] and row["group"].count("|") == 2 and row["novelty"] for row in rows)
    assert all(
        float(row["low"]) < float(row["predicted"]) for row in rows if "p99" not in row["metric"]
    )


@pytest.fixture(scope="module")
def halves():
    """Log errors of first predictions, the ends stated then, and the half-widths of today."""
    figures = possible_figures(later_figures(), metrics=KEPT)
    lines, rule = later_lines(figures), inference_calibration().ranges
    then = [[log(float(row[end]) / float(row["predicted"])) for end in ENDS] for row in figures]
    errors = np.array([line.log_ratio for line in lines])
    return errors, np.array(then), np.array([rule.half(line.keys) for line in lines])


def interval_score(errors, low, high):
    """Width and ten times what lies outside, in logs [Gneiting2007]."""
    outside = np.maximum(0, low - errors) + np.maximum(0, errors - high)
    return float(np.mean(high - low + 10 * outside))


def test_ranges_hold_about_four_of_five_first_predictions(halves):
    errors, _, half = halves
    assert 0.76 <= np.mean(np.abs(errors) <= half) <= 0.86


def test_ranges_are_worth_more_than_those_stated_then(halves):
    errors, then, half = halves
    before = interval_score(errors, then[:, 0], then[:, 1])
    assert interval_score(errors, -half, half) < 0.97 * before


@pytest.fixture(scope="module")
def held_out():
    """All first predictions with the half-widths that groups of other folds ask for."""
    found = figures()
    rules = held_out_rules(found)
    return found, np.array([rules[each.line.group].half(each.line.keys) for each in found])


def test_ranges_hold_four_of_five_figures_of_groups_held_out(held_out):
    found, half = held_out
    inside = np.abs([each.line.log_ratio for each in found]) <= half
    groups = {}
    for each, is_inside in zip(found, inside, strict=True):
        groups.setdefault(each.line.group, []).append(is_inside)
    assert 0.76 <= np.mean(inside) <= 0.84
    assert 0.76 <= np.mean([np.mean(each) for each in groups.values()]) <= 0.84


def test_ranges_are_worth_more_than_those_stated_then_by_groups_held_out(held_out):
    found, half = held_out
    error = np.array([each.line.log_ratio for each in found])
    then = np.array([[each.low, each.high] for each in found]).T
    assert scored(error, -half, half) < scored(error, *then)


def test_steps_of_a_dense_model_are_known_better_than_of_experts():
    rule = inference_calibration().ranges
    dense, experts = (
        rule.half(range_keys("tpot_mean_ms", "fixed_concurrency", kind=kind, novelty=SEEN))
        for kind in ("dense|cuda|vllm", "experts|cuda|vllm")
    )
    assert dense < experts


def test_waits_at_a_limit_are_known_less_than_steps_there():
    rule = inference_calibration().ranges
    tpot, ttft = (
        rule.half(range_keys(metric, AT_LIMIT, kind="dense|cuda|trtllm", novelty=SEEN))
        for metric in ("tpot_mean_ms", "ttft_mean_ms")
    )
    assert tpot < ttft


@pytest.mark.parametrize("metric", ["output_tokens_per_s", "tpot_mean_ms"])
def test_own_runs_narrow_as_far_as_sites_of_real_rows_say(metric):
    made, rule = probed_sites(), inference_calibration().ranges
    left = {}
    for k in (1, 3):
        factor = narrowed(made, k, metric=metric)
        assert rule.log_half[f"probed|{k}|{metric}"] == pytest.approx(log(factor), abs=0.006)
        ratios = [each.ratio for each in made if each.k == k and each.cell.startswith(metric)]
        left[k] = factor * np.median(ratios)
    assert left[3] < left[1] < 0.8


def test_the_interval_score_falls_by_a_fifth_after_one_row_and_by_a_third_after_three():
    said = probes().splitlines()[-1]
    one, three = (int(text) for text in re.findall(r"(\d+) % after", said))
    assert one >= 20
    assert three >= 33


def test_stated_odds_of_a_target_are_what_happens():
    pairs = np.array(
        [(one.chance(t), one.measured_ms <= t) for one in stated() for t in TARGETS_MS]
    )
    nearly_sure = pairs[(pairs[:, 0] >= 0.86) & (pairs[:, 0] < 0.94)]
    even = pairs[(pairs[:, 0] >= 0.3) & (pairs[:, 0] < 0.7)]
    assert nearly_sure[:, 1].mean() == pytest.approx(0.9, abs=0.05)
    assert even[:, 1].mean() == pytest.approx(even[:, 0].mean(), abs=0.1)


def test_ranges_are_worth_more_than_the_recipe(held_out):
    found, half = held_out
    recipes = held_out_recipes(found)
    other = np.array([recipes[each.line.group].half(each.stated) for each in found])
    error = np.array([each.line.log_ratio for each in found])
    assert scored(error, -half, half) < scored(error, -other, other)

"""Runs side by side: one row for each accelerator, with days, cost, MFU and odds."""

from dataclasses import replace
from datetime import date
from math import erf, log, sqrt

import pytest

from fakes.fleets import job
from gpuplan import api
from gpuplan.domain.plan.sizing import TrainingFigures
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.explanation.runs import in_time_frac


def planned(**training):
    run = {"method": "lora", "tokens": 5e7, "deadline_days": 2, **training}
    model = "meta-llama/Llama-3.1-8B-Instruct"
    work = {"name": "run", "kind": "finetuning", "model": model, "training": run}
    policy = {"accelerators": {"allowed": ["H100", "A100", "L40S"]}}
    tree = {"version": 1, "name": "t", "workloads": [work], "policy": policy}
    return api.plan(tree, today=date(2026, 11, 16), n_samples=50).to_dict()


def test_every_accelerator_has_a_row_and_the_first_is_the_plan():
    document = planned()
    first, *others = document["comparison"]
    assert first["is_chosen"]
    assert not any(row["is_chosen"] for row in others)
    assert {row["accelerator"] for row in document["comparison"]} >= {"h100-sxm", "l40s"}
    assert first["run"]["total_usd"] == pytest.approx(document["plan"]["total_usd"], abs=0.02)
    assert first["run"]["wall_s"] == pytest.approx(document["plan"]["span_s"])
    assert first["probability_frac"] == document["uncertainty"]["kept_frac"]


def test_the_utilization_of_a_row_is_its_arithmetic_over_its_time():
    [row] = [row for row in planned()["comparison"] if row["accelerator"] == "h100-sxm"]
    flop = 4 * 8.03e9 * 5e7  # attention and the embedding tables are a few per cent
    by_hand = flop / (row["n_accelerators"] * 989.4e12 * row["run"]["wall_s"])
    assert row["run"]["mfu_frac"] == pytest.approx(by_hand, rel=0.15)


def test_the_odds_are_those_of_a_lognormal_law():
    wide = Estimate(value=10.0, low=5.0, high=20.0, tier="estimated")
    sd = log(20 / 5) / (2 * 1.2816)
    expected = 0.5 * (1 + erf(log(15 / 10) / sd / sqrt(2)))
    assert in_time_frac(job(wall_s=10.0), None) is None
    assert in_time_frac(job(), 1e9) == 1.0
    assert in_time_frac(_with_wall(wide), 15.0) == pytest.approx(expected, abs=1e-3)


def test_the_odds_hold_that_the_run_may_not_fit():
    wide = Estimate(value=10.0, low=5.0, high=20.0, tier="estimated")
    tight = replace(
        _with_wall(wide), training=TrainingFigures(mfu_frac=0.4, fit_probability_frac=0.6)
    )
    alone = in_time_frac(_with_wall(wide), 15.0)
    assert in_time_frac(tight, 15.0) == pytest.approx(0.6 * alone)
    assert in_time_frac(tight, None) == 0.6


def _with_wall(wall):
    return replace(job(), wall_s=wall)

"""A run over samples of its length and of prices."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from tests.unit.studies.sizing.test_training import jobs

from gpuplan.domain.ranges import exactly
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.studies.uncertainty.run_samples import duration_ratio, is_in_time
from gpuplan.studies.uncertainty.samples import draw_samples

LARGE = str(Path(__file__).parents[4] / "examples" / "large-training.yaml")
DAY = date(2026, 11, 1)


@pytest.fixture(scope="module")
def answer():
    return plan(PlanRequest(target=LARGE, today=DAY, n_samples=400))


def test_the_range_given_holds_four_of_five_samples():
    job = jobs()["h100-sxm"]
    samples = draw_samples(4000, 1, exactly(0.0), n_months=1.0, kinds=["h100-sxm"])
    low, high = np.percentile(duration_ratio(job, samples), [10, 90])
    assert high / low == pytest.approx(job.wall_s.high / job.wall_s.low, rel=0.01)


def test_a_later_deadline_is_met_more_often():
    job = jobs()["h100-sxm"]
    samples = draw_samples(1000, 1, exactly(0.0), n_months=1.0, kinds=["h100-sxm"])
    wall = job.wall_s
    shares = [is_in_time(job, samples, s).mean() for s in (wall.low, wall.value, wall.high, None)]
    assert shares == sorted(shares)
    assert shares[1] == pytest.approx(0.5, abs=0.05)
    assert shares[-1] == 1.0


def test_the_plan_of_a_run_says_how_sure_it_is(answer):
    found = answer.uncertainty
    assert found.inputs == ("duration of the run", "prices")
    assert {row.fleet.split(" x ")[1] for row in found.rows} == {"h100-sxm", "b200-sxm", "tpu-v5p"}
    assert all(row.p95_regret_usd_per_month >= 0 for row in found.rows)
    cost = found.cost_usd_per_month
    assert cost.low < cost.value < cost.high
    assert answer.plan.cost_usd_per_month == cost
    assert "error of the demand forecast" not in {a.what for a in answer.assumptions}


def test_porting_does_not_fall_with_prices(answer):
    by_name = {move.name: move for move in answer.uncertainty.prices}
    now, less = by_name["prices stay"], by_name["all fall by 40 %"]
    # The chosen run needs no porting: all of it is rent.
    assert less.usd_per_month == pytest.approx(0.6 * now.usd_per_month)
    assert less.best_usd_per_month <= less.usd_per_month

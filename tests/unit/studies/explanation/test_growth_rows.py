"""Counts and cost under low, middle and high growth."""

import re
from datetime import date

import pytest
import yaml
from tests.unit.studies.planning.test_rules import offer, scenario, service

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.report.plan.details import growth_table

DAY = date(2026, 11, 1)


@pytest.fixture
def planned(tmp_path):
    def run(tree: dict):
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(tree))
        return plan(PlanRequest(target=str(path), today=DAY, n_samples=0))

    return run


def grown(**rates):
    growth = {"per_month_frac": rates}
    return scenario(service(rate=150), growth=growth, budget={"horizon_months": 12})


def test_every_growth_has_its_count_and_its_cost(planned):
    answer = planned(grown(low=0.0, mid=0.05, high=0.1))
    low, mid, high = answer.explanation.growth
    assert [row.name for row in (low, mid, high)] == ["low", "mid", "high"]
    # The peak of the last quarter is that of its last month, the twelfth.
    assert low.load_ratio == pytest.approx(1.0)
    assert mid.load_ratio == pytest.approx(1.05**11)
    assert high.load_ratio == pytest.approx(1.1**11)
    assert (
        low.first_usd_per_month == low.last_usd_per_month == pytest.approx(low.mean_usd_per_month)
    )
    assert low.mean_usd_per_month < mid.mean_usd_per_month < high.mean_usd_per_month
    # Given capacities count in proportion, rounded up.
    n_low, n_high = (int(row.last_fleet.split()[0]) for row in (low, high))
    assert n_high / n_low == pytest.approx(1.1**11, rel=0.1)
    assert high.last_usd_per_month == pytest.approx(n_high * 3.0 * 730)


def test_without_growth_there_are_no_rows(planned):
    answer = planned(scenario(service(rate=150)))
    assert answer.explanation.growth == ()
    assert growth_table(answer).rows == ()


def test_a_growth_that_is_known_is_one_row(planned):
    answer = planned(grown(low=0.05, mid=0.05, high=0.05))
    assert [row.name for row in answer.explanation.growth] == ["mid"]


def test_ordered_nodes_stay_whatever_the_growth(planned):
    """Reserved nodes are paid for though demand stays; what is missing is rented beside them."""
    offers = [offer("H100", 3.0), offer("H100", 1.5, purchase="reserved", term_months=12)]
    tree = grown(low=0.0, mid=0.05, high=0.1) | {"prices": {"offers": offers}}
    answer = planned(tree)
    [line] = [line for line in answer.explanation.why if "nodes ordered here" in line]
    costs = {
        rate: float(usd.replace(",", ""))
        for rate, usd in re.findall(r"([0-9]+)%/month [$]([0-9,]+)/month", line)
    }
    assert costs["0"] <= costs["5"] < costs["10"]
    # The middle growth is what the plan was made for: its bill in today's money.
    assert costs["5"] == pytest.approx(answer.proof.bill_usd / 12, abs=1.0)
    # Ten nodes carry today's 150 a second; they are paid at least, whatever comes.
    assert costs["0"] >= 10 * 1.5 * 730 - 1

"""What more money buys best: priced by the same curve as the plan, compared by the per cent."""

from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from gpuplan.domain.columns import floats
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.studies.explanation.burst import (
    SUM_USD,
    faster_code,
    more_replicas,
    next_spend,
)
from gpuplan.studies.planning.curves import all_curves, cost_usd_per_month
from gpuplan.studies.planning.inputs import plan_inputs
from gpuplan.studies.planning.options import fleet_table
from gpuplan.studies.sizing.workload import size_workload

EXAMPLES = Path(__file__).parents[4] / "examples"
DAY = date(2026, 11, 1)


@cache
def chat():
    inputs = plan_inputs(PlanRequest(target=str(EXAMPLES / "chat.yaml"), today=DAY))
    [work] = inputs.scenario.workloads
    sizing = size_workload(work, inputs.scenario, inputs.around)
    table = fleet_table(inputs.scenario, inputs.catalog, [sizing], market=inputs.market)
    curves = all_curves(table, work.name)
    curves.sort(key=lambda curve: cost_usd_per_month(curve, sizing.demand))
    return sizing, curves


def test_replicas_are_bought_up_to_the_sum_and_no_further():
    sizing, curves = chat()
    demand, curve = sizing.demand, curves[0]
    way = more_replicas(curve, demand)
    base = cost_usd_per_month(curve, demand)
    carried = 1 + way.more_frac
    assert cost_usd_per_month(curve, demand, factor=carried) - base == way.usd_per_month <= SUM_USD
    one_more = carried + curve.n_load_per_replica / demand.peak_of(0, 0)
    assert cost_usd_per_month(curve, demand, factor=one_more) - base > SUM_USD


def full(curve, demand):
    """The curve of a fleet whose replicas have nothing to spare at the peak."""
    return replace(curve, n_load_per_replica=demand.peak_of(0, 0) / 2)


def test_a_fleet_too_dear_for_the_sum_says_so():
    sizing, curves = chat()
    dear = replace(full(curves[0], sizing.demand), usd_per_node_h=1000.0)
    assert more_replicas(dear, sizing.demand) is None


def test_code_is_worth_what_the_same_load_costs_in_replicas():
    sizing, curves = chat()
    peak = sizing.demand.peak_of(0, 0)
    # A replica for every request a second, sixty of them: a tenth more load is six replicas more.
    many = replace(curves[0], n_load_per_replica=peak / 60, n_per_node=2, n_spare=0)
    way = faster_code(many, sizing.demand)
    nodes = many.n_nodes(floats([1.1 * peak]))[0] - many.n_nodes(floats([peak]))[0]
    assert way.usd_per_month == pytest.approx(nodes * many.usd_per_node_h * 730)


def test_ways_stand_in_order_of_what_a_per_cent_costs():
    sizing, curves = chat()
    curves = [full(curves[0], sizing.demand), *curves[1:]]
    lines = list(next_spend(sizing.sized[0], curves, sizing.demand))
    assert "more load" in lines[0]
    assert lines[1].startswith("code with 10% more")


def test_storage_of_a_run_is_worth_the_time_that_it_saves():
    answer = plan(PlanRequest(target=str(EXAMPLES / "large-training.yaml"), today=DAY, n_samples=0))
    [line] = [line for line in answer.explanation.next_spend if "storage" in line]
    # 3.1 % are lost at 20 GB/s and 1.6 % at 100 GB/s on 1,024; fewer accelerators lose less.
    share = float(line.split("shortens the run by ")[1].split("%")[0])
    assert 0.3 < share < 1.6
    usd = float(line.split("worth at most $")[1].split(" ")[0].replace(",", ""))
    assert usd == pytest.approx(answer.plan.total_usd * share / 100, rel=0.06)

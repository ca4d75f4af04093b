"""Autoscaled fleets, fleet-size curves, and requests as rows."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from fakes.results import column, figure, fleet_run, simulation, titled
from gpuplan import api
from gpuplan.domain.simulation.fleet import ENDS
from gpuplan.domain.simulation.simulation import FleetSizeCurve, FleetTried
from gpuplan.report.charts.simulation import curve_charts, fleet_charts
from gpuplan.report.simulation.curve import curve_sheet
from gpuplan.report.simulation.document import passed_columns, request_columns, requests_csv
from gpuplan.report.simulation.fleet import STATUSES, fleet_sheet
from gpuplan.report.simulation.utilization import share, use_document, use_table
from gpuplan.units import HOUR


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fleet_run(tmp_path_factory.mktemp("fleet"))


def points(*recalls):
    return tuple(
        FleetTried(
            n_replicas=n, recall_frac=recall, precision_frac=0.4, busy_frac=0.5,
            ttft_p99_s=None if n == 1 else 0.2, is_overloaded=n == 1, n_late=n,
            paid_accelerator_s=3600.0 * n, useful_accelerator_s=1.0,
        )
        for n, recall in enumerate(recalls, 1)
    )  # fmt: skip


@pytest.fixture
def curve():
    found = simulation()
    return FleetSizeCurve(
        setup=found.setup, slo=found.slo, points=points(0.2, 0.9, 1.0),
        precision_frac=(0.9, 0.7, 0.5), f_frac=(0.3, 0.8, 0.6), cost_usd=(9.0, 2.0, 3.0), best=1,
        beta_ratio=1.5, waste_usd_per_accelerator_s=2.5 / HOUR, delay_usd_per_request=0.01,
        useful_accelerator_s_per_request=0.5, assumptions=(),
    )  # fmt: skip


def test_every_request_ends_in_one_way(run):
    sheet = fleet_sheet(run)
    assert sum(sheet.document["fleet"]["ends"].values()) == 200
    table = titled(sheet, "How requests ended")
    assert table.rows[0][0] == ENDS[0]
    assert all(cell != "0" for cell in column(table, "requests")[1:])


def test_failures_of_replicas_are_counted(run):
    rows = dict(titled(fleet_sheet(run), "How requests ended").rows)
    assert rows["replicas failed or preempted (spot)"] == "1"


def test_pools_pay_for_what_they_hold(run):
    sheet = fleet_sheet(run)
    pools = sheet.document["fleet"]["pools"]
    assert sum(pool["paid_gpu_hours"] for pool in pools) == pytest.approx(
        sheet.document["fleet"]["paid_gpu_hours"]
    )
    table = titled(sheet, "Pools")
    assert column(table, "pool") == ["fast", "slow"]
    assert column(table, "cold start (s)")[1] == "7"
    assert set(pools[0]["cold_start_s"]) == {"total", "boot", "image", "load", "compile", "warmup"}


def test_the_timeline_has_every_status(run):
    sheet = fleet_sheet(run)
    timeline = sheet.document["fleet"]["timeline"]
    assert {"at_s", "pool", *STATUSES} == set(timeline)
    assert len({len(values) for values in timeline.values()}) == 1
    table = titled(sheet, "Replicas over time")
    assert table.columns == ("time (s)", "pool", *STATUSES)
    assert len(table.rows) == len(timeline["at_s"])


def test_a_fleet_has_all_tables_of_a_run_and_its_own(run):
    titles = [table.title for table in fleet_sheet(run).tables]
    assert titles[0] == "Latency (ms)"
    assert titles[-1].startswith("Utilization over time")
    assert "Pools" in titles


def test_sizes_that_may_change_are_a_range(run):
    fleet = run.fleet
    scaled = replace(fleet.pools[0], size=replace(fleet.pools[0].size, n_least=1, n_most=4))
    changed = replace(run, fleet=replace(fleet, pools=(scaled, fleet.pools[1])))
    assert fleet_sheet(changed).head.startswith("pools fast (1 to 4), slow (1): ")


def test_replicas_are_charted_where_they_change(run):
    titles = [chart.title for chart in fleet_charts(run)]
    assert titles[1] == "Replicas ready, by pool"
    [chart] = [c for c in fleet_charts(run) if c.title.startswith("Replicas")]
    assert [series.name for series in chart.series] == ["fast", "slow"]


def test_the_best_size_is_marked_once(curve):
    sheet = curve_sheet(curve)
    cells = column(sheet.tables[0], "replicas")
    assert [cell for cell in cells if cell.startswith("→")] == ["→ 2"]
    assert sheet.document["best_replicas"] == 2
    assert sheet.document["cheapest_replicas"] == 2


def test_what_is_unknown_is_a_question_mark_and_overload_is_loud(curve):
    table = curve_sheet(curve).tables[0]
    assert column(table, "TTFT p99 (ms)") == ["?", "200", "200"]
    assert column(table, "") == ["overloaded", "", ""]


def test_curve_document_has_hours_and_dollars(curve):
    document = json.loads(json.dumps(curve_sheet(curve).document))
    assert [point["paid_gpu_h"] for point in document["points"]] == [1.0, 2.0, 3.0]
    assert document["cost_waste_usd_per_gpu_h"] == pytest.approx(2.5)
    assert [point["precision"] for point in document["points"]] == [0.9, 0.7, 0.5]


def test_definitions_say_how_beta_came_about(curve):
    [told] = [lines for heading, lines in curve_sheet(curve).remarks if heading == "Definitions:"]
    assert any("beta²" in line and "= 2.25" in line for line in told)
    assert "least at 2 replicas; beyond it costs one" in told[-1]


def test_one_size_more_and_less_are_priced_beside_the_cheapest(curve):
    found = curve_sheet(curve).document
    costs = {one["replicas"]: one["cost_usd"] for one in found["points"]}
    sizes = sorted(costs)
    at = sizes.index(found["cheapest_replicas"])
    more = costs[sizes[at + 1]] - costs[sizes[at]] if at + 1 < len(sizes) else None
    less = costs[sizes[at - 1]] - costs[sizes[at]] if at else None
    assert found["marginal"] == {"one_more_usd": more, "one_less_usd": less}
    assert all(usd is None or usd >= 0 for usd in found["marginal"].values())


def test_curve_charts_mark_the_best_and_the_cheapest(curve):
    both, scores, cost = curve_charts(curve)
    assert both.series[1].x.tolist() == [90.0]
    assert [series.name for series in scores.series] == ["precision", "recall", "F"]
    assert "2.00 USD at 2 replicas" in cost.note


def test_rows_are_requests_in_order_of_arrival():
    outcome = simulation().outcome
    columns = request_columns(outcome)
    wanted = ["request_id", "arrival_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions"]
    assert list(columns)[:6] == wanted
    assert columns["request_id"] == list(range(len(outcome.requests)))
    assert columns["arrival_s"] == sorted(columns["arrival_s"])
    assert set(columns["end"]) == {ENDS[0]}


def test_csv_of_requests_reads_back():
    outcome = simulation().outcome
    rows = list(csv.DictReader(requests_csv(outcome)))
    assert len(rows) == len(outcome.requests)
    assert list(rows[0]) == list(request_columns(outcome))
    assert float(rows[0]["ttft_s"]) == pytest.approx(outcome.times.ttft_s[0])


def test_what_a_request_never_had_is_empty():
    outcome = simulation().outcome
    lost = outcome.times.is_finished.copy()
    lost[0] = 0
    columns = passed_columns(outcome.requests, replace(outcome.times, is_finished=lost), first=100)
    assert columns["request_id"][0] == 100
    assert columns["ttft_s"].tolist()[0] is None
    assert columns["end"][0] == ENDS[1]
    assert columns["ttft_s"].tolist()[1] is not None


def test_utilization_of_the_document_is_a_share():
    found = simulation()
    use = use_document(found.outcome, found.statistics.busy_frac)
    for layer, values in use["over_time"].items():
        assert all(0 <= value <= 1 for value in values), layer
    assert use["allocated"] == 1.0


def test_dust_of_long_sums_is_dropped():
    assert share(1.0000000000000002) == 1.0
    assert share(0.1 + 0.2) == 0.3


def test_few_rows_are_means_of_many_bins():
    outcome = simulation().outcome
    whole, short = use_table(outcome, None), use_table(outcome, 1)
    assert len(short.rows) == 1
    mean = np.mean([figure(cell) for cell in column(whole, "busy")])
    assert figure(short.rows[0][1]) == pytest.approx(mean, abs=15)
    assert "KV cache" in whole.columns


def test_the_api_shows_the_same_sheet():
    found = simulation()
    assert api.simulate_sheet(found).document["verdict"] == "within limits"

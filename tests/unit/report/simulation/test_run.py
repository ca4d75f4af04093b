"""A simulated run as a sheet: latencies, throughput, verdict, and what to know about them."""

import json
from dataclasses import replace

import pytest

from fakes.results import column, figure, lines, simulation, titled
from gpuplan.domain.simulation.simulation import FleetTried, SmallestFleet
from gpuplan.report.simulation.document import DEFINITIONS, verdict
from gpuplan.report.simulation.run import simulate_sheet, smallest_line
from gpuplan.units import MS


def tried(n, recall=1.0, *, overloaded=False):
    return FleetTried(
        n_replicas=n, recall_frac=recall, precision_frac=0.5, busy_frac=0.5, ttft_p99_s=0.1,
        is_overloaded=overloaded, paid_accelerator_s=10.0, useful_accelerator_s=5.0, n_late=0,
    )  # fmt: skip


def judged(**changed):
    found = simulation()
    return replace(found, statistics=replace(found.statistics, **changed))


def test_percentiles_rise_and_table_and_document_agree():
    sheet = simulate_sheet(simulation())
    table = titled(sheet, "Latency")
    heads = [f"{name}" for name in ("p50", "p90", "p95", "p99", "p99.9")]
    for row in table.rows:
        points = [figure(row[table.columns.index(head)]) for head in heads]
        assert points == sorted(points), row
    ttft = dict(zip(table.columns, table.rows[0], strict=True))
    assert ttft["latency"] == "TTFT"
    assert figure(ttft["p95"]) == pytest.approx(sheet.document["ttft_s"]["p95"] / MS, abs=0.06)


def test_every_latency_is_named_as_the_field_does():
    names = column(titled(simulate_sheet(simulation()), "Latency"), "latency")
    assert names == ["TTFT", "TPOT", "E2E", "queue wait"]


def test_files_hold_every_interval():
    sheet = simulate_sheet(simulation())
    table = titled(sheet, "95 % intervals")
    assert table not in sheet.tables
    assert {"mean", "p50", "p99"} <= set(column(table, "statistic"))
    for value, low, high in zip(
        column(table, "ms"), column(table, "low (ms)"), column(table, "high (ms)"), strict=True
    ):
        if "?" not in (low, high):
            assert figure(low) <= figure(value) <= figure(high)


def test_goodput_is_shown_only_where_an_slo_was_given():
    with_slo = dict(titled(simulate_sheet(simulation()), "Fleet").rows)
    without = dict(titled(simulate_sheet(simulation(ttft_s=None)), "Fleet").rows)
    assert "goodput (requests/s within SLO)" in with_slo
    assert not any("within SLO" in label for label in without)
    assert "recall (requests served (no SLO was given))" in without


def test_figures_of_the_fleet_are_those_of_the_run():
    found = simulation()
    rows = dict(titled(simulate_sheet(found), "Fleet").rows)
    assert figure(rows["output tokens/s"]) == pytest.approx(
        found.statistics.output_tokens_per_s, abs=0.6
    )
    assert rows["preemptions"] == f"{found.outcome.totals.n_preemptions:,}"
    assert rows["utilization (share of time busy)"] == f"{100 * found.statistics.busy_frac:.1f} %"


def test_power_is_shown_where_it_is_known():
    found = simulation()
    assert "power of the accelerators" in dict(titled(simulate_sheet(found), "Fleet").rows)
    dark = simulate_sheet(replace(found, power=None))
    assert "power of the accelerators" not in dict(titled(dark, "Fleet").rows)
    assert dark.document["power"] is None


def test_the_document_keeps_the_contract():
    document = json.loads(json.dumps(simulate_sheet(simulation()).document, allow_nan=False))
    wanted = {
        "n_requests", "n_completed", "wall_s", "requests_per_wall_s", "ttft_s", "tpot_s", "e2e_s",
        "wait_s", "output_tokens_per_s", "utilization", "precision", "recall", "verdict", "load",
        "schema_version", "definitions", "warmup", "classes", "smallest_fleet", "slo_s",
    }  # fmt: skip
    assert wanted <= set(document)
    assert {"mean", "p50", "p90", "p95", "p99"} <= set(document["ttft_s"])
    assert document["slo_s"] == {"ttft": 0.3, "tpot": None, "e2e": None}


def test_every_quantity_of_the_document_is_defined():
    assert {"ttft", "tpot", "e2e", "wait", "precision", "recall"} <= set(DEFINITIONS)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"is_overloaded": True}, "overloaded"),
        ({"recall_frac": 0.1}, "objective missed"),
        ({"recall_frac": 1.0}, "within limits"),
    ],
)
def test_the_verdict_is_one_word(changed, word):
    found = judged(**changed)
    assert verdict(found) == word
    assert simulate_sheet(found).head.endswith(word)


def test_without_an_slo_nothing_is_missed():
    found = simulation(ttft_s=None)
    few = replace(found, statistics=replace(found.statistics, recall_frac=0.1))
    assert verdict(few) == "not all served"


def test_the_head_counts_what_was_served():
    head = simulate_sheet(simulation()).head
    assert "600 of 600 requests served" in head
    assert "(bf16) on 1 × H100" in head


def test_an_overloaded_fleet_says_how_fast_the_queue_grows_and_what_would_do():
    held = SmallestFleet(
        n_replicas=3, criterion="queue bounded", tried=(tried(2, overloaded=True), tried(3))
    )
    found = replace(judged(is_overloaded=True, backlog_requests_per_s=1.25), holding=held)
    told = lines(simulate_sheet(found), "Overloaded:")
    assert "grows by 1.25 requests/s" in told[0]
    assert told[1] == "3 replicas would carry the load (queue bounded; 2 do not)"
    assert not lines(simulate_sheet(found), "Too small:")


def test_a_fleet_that_rejects_says_what_would_serve():
    held = SmallestFleet(n_replicas=2, criterion="all served", tried=(tried(2),))
    found = replace(simulation(), holding=held)
    assert "rejected" in lines(simulate_sheet(found), "Too small:")[0]
    document = simulate_sheet(found).document["smallest_fleet"]
    assert document["replicas"] == 2
    assert document["tried"] == [{"replicas": 2, "recall": 1.0, "overloaded": False}]


def test_where_nothing_would_do_the_largest_tried_is_named():
    held = SmallestFleet(n_replicas=None, criterion="c", tried=(tried(1), tried(64)))
    assert smallest_line(held) == "not even 64 replicas carry the load (c)"


def test_remarks_explain_load_warmup_and_intervals():
    told = lines(simulate_sheet(simulation()), "Measured:")
    assert "burstiness (CV of inter-arrival times)" in told[0]
    assert any(line.startswith("TPOT: ") for line in told)
    assert any(line.startswith("warm-up: ") for line in told)
    assert "95 % interval" in told[-1]


def test_classes_are_shown_only_where_there_are_several():
    assert not any(t.title == "By class" for t in simulate_sheet(simulation()).tables)
    assert simulate_sheet(simulation()).document["classes"] == []


def test_the_same_run_is_the_same_text():
    first, second = simulate_sheet(simulation()), simulate_sheet(simulation())
    assert first == second

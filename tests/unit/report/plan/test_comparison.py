"""The comparison and the odds on one screen."""

from dataclasses import replace

from fakes.plans import answer, comparison_row, decision
from fakes.results import example_plan
from gpuplan.report.plan.comparison import (
    _latency,
    risk_basis,
    risk_lines,
    row_fleet,
    rows_tables,
)


def shown(*rows, is_short=True):
    found = replace(answer(), decision=replace(decision(), comparison=tuple(rows)))
    [only] = rows_tables(found, is_short=is_short)
    return only


def with_evidence(kind, **fields):
    row = comparison_row(kind, is_chosen=False)
    return replace(row, evidence=replace(row.evidence, **fields))


def test_the_plan_comes_first_with_all_its_figures():
    table = shown(comparison_row())
    assert table.columns == ("fleet", "$/month", "$/Mtok", "TTFT p95", "P(SLO)", "kW", "note")
    [row] = table.rows
    assert row == (
        "6 × H100 SXM TP2 FP8", "$12,921", "4.20", "400 ms", "93 %", "5.4", "chosen",
    )  # fmt: skip


def test_an_unknown_draw_is_said_and_no_fleet_has_a_reason():
    unknown = with_evidence("tpu-v5e", power_w=None, note="estimated: no measurement")
    table = shown(comparison_row(), unknown, decision().comparison[1], is_short=False)
    assert table.rows[1][-2:] == ("unknown", "estimated: no measurement")
    assert table.rows[2][0] == "L4 FP8"
    assert table.rows[2][1] == "none"
    assert table.rows[2][-1] == "weights need 71 GB more; tp 8 would fit"


def test_a_screen_holds_five_rows_two_of_which_could_not_be_chosen():
    others = [with_evidence(f"kind-{k}") for k in range(9)]
    narrow = [with_evidence(f"n-{k}", is_eligible=False, note="narrower") for k in range(5)]
    table = shown(comparison_row(), *others, *narrow, decision().comparison[1])
    assert len(table.rows) == 5
    assert [row[-1] for row in table.rows] == ["chosen", *[""] * 2, *["narrower"] * 2]
    assert table.title.endswith("; 5 of 16")


def test_several_workloads_are_named():
    table = shown(comparison_row(), replace(comparison_row("l4"), workload="search"))
    assert table.columns[0] == "workload"
    assert [row[0] for row in table.rows] == ["chat", "search"]


def test_other_odds_have_their_fleet_and_price():
    [safe] = risk_lines(answer())
    assert safe == "95 % or more: 8 × H100 SXM (4 replicas, TP2), $17,228/month (+$4,307): 97 %"
    assert risk_basis(answer()) == ("measure one replica",)


def test_a_level_that_nothing_reaches_is_said():
    risk = decision().risk
    none = replace(risk.fleets[0], fleet="", usd_per_month=None, probability_frac=None)
    found = replace(answer(), decision=replace(decision(), risk=replace(risk, fleets=(none,))))
    assert next(risk_lines(found)) == "95 % or more: no fleet reaches it"
    assert [*risk_lines(replace(found, decision=replace(decision(), risk=None)))] == []


def test_work_without_a_precision_of_its_own_has_none_in_its_name():
    rows = example_plan("cpu-is-enough").decision.comparison
    names = [row_fleet(row) for row in rows if row.precision == "as published"]
    assert names == ["CPU Xeon 8480"]


def test_a_latency_below_a_millisecond_is_not_zero():
    row = replace(example_plan("chat").decision.comparison[0], latency={"e2e_p95_s": 0.00042})
    assert _latency("e2e_p95_s", row) == "0.42 ms"

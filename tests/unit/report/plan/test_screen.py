"""A plan on one screen: a sentence for one's manager, then what it rests on, in forty lines."""

import contextlib
import io
import json
import os
import re
from dataclasses import replace
from unittest.mock import patch

import pytest

from fakes.plans import answer, chosen
from gpuplan.cli.command import Form
from gpuplan.cli.output import emit
from gpuplan.domain.plan.answer import Explanation
from gpuplan.domain.provenance import Assumption
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of
from gpuplan.report.plan.answer import plan_sheet, weightiest
from gpuplan.report.plan.headline import headline
from shared_data import ROOT

PLANS = sorted((ROOT / "tests" / "golden" / "documents" / "plan").glob("*.json"))
N_COLUMNS, N_LINES = 100, 40


def read(path):
    """The answer behind a golden document."""
    document = json.loads(path.read_text())["document"]
    document["provenance"] |= {"package_version": "0", "catalog_sha256": "0"}
    return plan_of(read_yaml_text(json.dumps(document), name=path.name))


def example(name):
    return read(next(path for path in PLANS if path.stem == name))


def screen(sheet):
    out, err = io.StringIO(), io.StringIO()
    width = patch.dict(os.environ, {"COLUMNS": str(N_COLUMNS)})
    with width, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        emit(sheet, Form.TABLE)
    return out.getvalue() + err.getvalue()


def no_plan(*conflicts):
    return replace(
        answer(), plan=None, proof=None, uncertainty=None, charts=(),
        explanation=Explanation(conflicts=conflicts),
    )  # fmt: skip


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_example_fits_one_screen(path):
    text = screen(plan_sheet(read(path)))
    n_lines = sum(max(1, -(-len(line.rstrip()) // N_COLUMNS)) for line in text.splitlines())
    assert n_lines <= N_LINES, text


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_first_line_is_a_sentence_with_work_fleet_and_cost(path):
    head = headline(read(path))
    assert head.endswith(".")
    assert head[0].isupper()
    assert " on " in head
    assert "$" in head
    assert " × " in head or "CPU node" in head


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("chat", ["Serve Llama-3.3-70B-Instruct (FP8) for 6,000 users on 6 × H100 SXM",
                  "(3 replicas, TP2)", "/month", "on demand at Verda", "all SLOs met with"]),
        ("which-gpu", ["at 13.3 requests/s", "on demand at your price"]),
        ("large-training", ["Pre-train base model (BF16) on 384 × B200 SXM",
                            "total", "the deadline is met with"]),
        ("scaling", ["Fine-tune Meta-Llama-3-8B", "8 × H100 SXM (DP8 FSDP) in 3.8 h",
                     "no deadline was given"]),
        ("cpu-is-enough", ["1 CPU node", "no GPU needed"]),
        ("shared-cluster", ["3 workloads (search ranking, speech, notebooks)",
                            "48 × A100 SXM 80GB", "on nodes you already have"]),
        ("burst-to-cloud", ["Run all teams on 60 × H100 SXM:", "owned + on demand"]),
    ],
)  # fmt: skip
def test_headline_of_each_kind_of_work(name, words):
    head = headline(example(name))
    for wanted in words:
        assert wanted in head


def test_the_screen_leads_to_everything_else():
    text = screen(plan_sheet(answer()))
    for wanted in ("gpuplan explain", "--verbose", "gpuplan report"):
        assert wanted in text


def test_nothing_is_lost_behind_verbose():
    sheet = plan_sheet(example("chat"))
    short, whole = screen(sheet), screen(sheet.with_details())
    for assumption in example("chat").assumptions:
        assert assumption.what in whole
    for wanted in ("Rejected candidates", "Figures", "SLO attainment", "Load:", "Pools"):
        assert wanted in whole
        assert wanted not in short


def test_comparison_puts_the_plan_first_then_other_accelerators():
    [table] = [t for t in plan_sheet(example("coding-agents")).tables if "Compar" in t.title]
    assert re.match(r"\d+ × MI300X TP8 BF16", table.rows[0][0])
    assert [row[-1] for row in table.rows[:3]] == ["chosen", "", ""]
    assert len({row[0].split()[2] for row in table.rows[:3]}) == 3
    assert re.search(r"; 5 of \d\d$", table.title)
    assert "TTFT p95" in table.columns


def test_slo_rows_have_target_prediction_range_and_verdict():
    [table] = [t for t in plan_sheet(answer()).tables if t.title.startswith("SLOs")]
    assert table.rows[0] == ("chat", "TTFT p95", "2.00 s", "400.0 ms", "360.0 ms … 440.0 ms", "met")
    assert table.rows[1][1:4] == ("budget.usd_per_month", "$20,000", "$12,921 (65 %)")


def test_violated_slos_come_first_and_are_loud():
    sheet = plan_sheet(answer(plan=chosen(is_kept=False)))
    assert "VIOLATED: chat TTFT p95" in sheet.head
    assert "VIOLATED" in sheet.tables[1].rows[0]
    over = plan_sheet(answer(plan=chosen(is_within=False)))
    assert "VIOLATED: budget.usd_per_month" in over.head


def test_purchases_add_up_to_the_cost():
    plan = example("burst-to-cloud").plan
    [table] = [t for t in plan_sheet(example("burst-to-cloud")).tables if "Cost" in t.title]
    *lines, total = table.rows
    place = table.columns.index("$/month")
    assert total[0] == "total"
    dollars = [float(row[place].replace("$", "").replace(",", "")) for row in lines]
    assert sum(dollars) == pytest.approx(plan.cost_usd_per_month.value, abs=1)
    assert dollars == sorted(dollars, reverse=True)


def test_assumptions_are_ranked_by_what_they_move():
    planned = example("coding-agents")
    bars = {b.what: b.high_usd_per_month - b.low_usd_per_month for b in planned.uncertainty.tornado}
    found = [line.split(" (")[0] for line in weightiest(planned)]
    assert found[: len(bars)] == sorted(bars, key=bars.get, reverse=True)
    without = replace(example("chat"), uncertainty=None)
    assert "hourly_profile" in next(iter(weightiest(without)))


def test_without_a_plan_what_binds_and_the_smallest_change_come_first():
    sheet = plan_sheet(
        no_plan("site.power_kw: cannot be kept", "site.power_kw: 3 kW short", "more")
    )
    assert "What binds: site.power_kw: cannot be kept." in sheet.head
    assert "Smallest change that helps: site.power_kw: 3 kW short." in sheet.head
    assert sheet.tables[0].rows == (("more",),)
    assert "No plan meets every limit" in plan_sheet(no_plan()).head


def test_a_plan_without_samples_claims_no_probability():
    assert "probability" not in headline(replace(answer(), uncertainty=None))


def test_probability_never_claims_certainty():
    sure = replace(answer().uncertainty, kept_frac=1.0)
    assert "> 99 % probability" in headline(replace(answer(), uncertainty=sure))
    half = replace(sure, kept_frac=0.5)
    assert "with 50 % probability" in headline(replace(answer(), uncertainty=half))


def test_how_often_users_ask_comes_first_where_it_is_assumed():
    asking = Assumption(what="Requests per hour", value="10", why="", change="--requests-per-hour")
    noted = replace(example("chat"), assumptions=(asking,))
    first = next(iter(weightiest(noted)))
    assert first == "requests per hour: 10 (change with --requests-per-hour)"

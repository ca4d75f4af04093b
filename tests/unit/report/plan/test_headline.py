"""Names of fleets in headlines and tables."""

from dataclasses import replace

import pytest
from tests.fakes.plans import answer, chosen, pool

from fakes.results import example_plan
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.inputs.plan_file import read_plan
from gpuplan.report.plan.document import plan_document, plan_text
from gpuplan.report.plan.headline import (
    age_words,
    fleet_of,
    fleet_words,
    headline,
    purchase_words,
    with_names,
)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        ("next is 1 x h200-sxm TP1 bf16", "next is 1 × H200 SXM BF16"),
        ("t4 tp2 pp2 fp16 b2048: 60 ms", "T4 TP2 PP2 FP16: 60 ms"),
        ("h100-sxm tp1 pp2 bf16 over 100 Gbit/s b8192", "H100 SXM PP2 BF16 over 100 Gbit/s"),
        ("60 users x 3 requests", "60 users x 3 requests"),
        ("6 x h100-sxm", "6 × H100 SXM"),
        ("1 x l4 + 3 x l40s", "1 × L4 + 3 × L40S"),
        ("1,404 x tpu-v5p as 3 x TP2", "1,404 × TPU v5p as 3 × TP2"),
        ("what you already have", "what you already have"),
        ("2528+ x rtx-2000-ada", "2528+ × RTX 2000 Ada"),
        ("chat: tpot p95 binds; ttft is fine", "chat: TPOT p95 binds; ttft is fine"),
        ("9 x b200-sxm (9 replicas, TP1, bf16)", "9 × B200 SXM (9 replicas, BF16)"),
        ("in bf16, of qwen3-fp8", "in BF16, of qwen3-fp8"),
        ("on_demand runpod 8x_H100", "on demand at Runpod, 8x_H100"),
        ("existing h100-sxm x8", "existing nodes of 8 × H100 SXM"),
        ("spot nodes are reclaimed", "spot nodes are reclaimed"),
    ],
)
def test_fleets_of_a_table_are_named_alike(ids, names):
    assert with_names(ids) == names


@pytest.mark.parametrize(
    ("n", "layout", "words"),
    [
        (3, {"tp": 2}, "6 × H100 SXM (3 replicas, TP2)"),
        (6, {}, "6 × H100 SXM (6 replicas)"),
        (
            1,
            {"tp": 8, "pp": 2, "n_servers_per_replica": 2},
            "6 × H100 SXM (TP8 PP2 over 2 servers)",
        ),
        (1, {"dp": 8, "ep": 8}, "6 × H100 SXM (DP8 EP8)"),
        (1, {"sharding": "fsdp"}, "6 × H100 SXM (fsdp)"),
        (1, {"sharding": "none"}, "6 × H100 SXM"),
        (1, {"sharding": "hsdp", "dp": 6}, "6 × H100 SXM (DP6 HSDP)"),
        (11, {"share": "1/2"}, "6 × H100 SXM as 11 × 1/2 H100 SXM"),
    ],
)
def test_the_whole_layout_is_named(n, layout, words):
    made = PoolLayout(**{"tp": 1, "pp": 1} | layout)
    assert fleet_words(replace(pool(), n_replicas=n, layout=made)) == words


def test_a_plan_with_its_layout_reopens(tmp_path):
    layout = PoolLayout(tp=1, pp=1, dp=8, ep=8, n_servers_per_replica=2)
    laid_out = replace(pool(), layout=layout)
    plan = replace(chosen(), pools=(laid_out,))
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer(plan=plan)), encoding="utf-8")
    assert read_plan(path).plan.pools == (laid_out,)
    [written] = plan_document(answer(plan=plan))["plan"]["pools"]
    assert (written["tp"], written["dp"], written["n_servers_per_replica"]) == (1, 8, 2)


@pytest.mark.parametrize(
    ("request_", "amount"),
    [
        ({"audio_s": 30}, "20 audio segments"),
        ({"image_width_px": 1024}, "20 images"),
        ({"image_width_px": 832, "frames": 81}, "20 video clips"),
        ({"input_tokens": 300}, "20 documents"),
    ],
)
def test_a_batch_is_counted_in_what_it_holds(request_, amount):
    given = answer()
    load = replace(given.load[0], kind="batch_inference")
    work = {"name": load.workload, "request": request_, "batch": {"docs": 20}}
    made = replace(given.provenance, scenario={"workloads": [work]})
    assert f" for {amount} on " in headline(replace(given, load=(load,), provenance=made))
    daily = made.scenario["workloads"][0] | {"batch": {"docs_per_day": 20}}
    made = replace(made, scenario={"workloads": [daily]})
    assert f" for {amount}/day on " in headline(replace(given, load=(load,), provenance=made))


def bought(**changed):
    [line] = pool().purchases
    return replace(line, **changed)


def test_a_headline_says_where_it_is_bought_and_how_old_the_price_is():
    made = answer()
    [line] = made.plan.pools[0].purchases
    known = bought(cloud="nebius", region="eu-north1", price_date=made.provenance.as_of)
    assert purchase_words(known) == "on demand at Nebius, eu-north1"
    assert age_words(made, known) == " (price 0 days old)"
    unsure = bought(cloud="runpod", region="", price_date="2020-01-01")
    assert purchase_words(unsure) == "on demand at Runpod, region unconfirmed"
    assert age_words(made, unsure).endswith(" days old, not firm)")
    surveyed = replace(
        known, price_usd_per_node_h=replace(known.price_usd_per_node_h, tier="assumed")
    )
    assert age_words(made, surveyed) == " (price 0 days old, not firm)"
    mine = bought(cloud="", region="", price_date="")
    assert (purchase_words(mine), age_words(made, mine)) == ("on demand at your price", "")
    assert age_words(made, line) in headline(made)


def asked(question, **changed):
    made = replace(answer(), **changed)
    return replace(made, explanation=replace(made.explanation, question=question, largest=""))


def test_a_question_is_answered_before_all_else():
    plain, plan = headline(asked("")), answer().plan
    assert (
        headline(asked("cost"))
        == f"It costs {plain.split(': ')[1].split(' on demand')[0]}. {plain}"
    )
    assert headline(asked("enough")).startswith("Yes, it is enough. ")
    none = asked("enough", plan=None)
    assert headline(none).startswith("No, it is not enough. What binds: ")
    rows = replace(answer().decision, risk=None)
    rented = replace(answer().provenance, scenario={"owned": [{"accelerator": "h100-sxm"}]})
    words = headline(asked("enough", decision=rows, provenance=rented))
    assert words.startswith("No, what you have is not used. ")
    assert plan is not None


def test_the_cheapest_of_several_is_named_with_what_the_others_cost():
    made = answer()
    first = next(row for row in made.decision.comparison if row.usd_per_month)
    dearer = replace(
        first, accelerator="l40s", usd_per_month=first.usd_per_month * 2, n_accelerators=9
    )
    both = replace(made.decision, comparison=(dearer, first))
    words = headline(asked("choice", decision=both))
    assert words.startswith("H100 SXM is cheapest: ")
    assert "L40S " in words.split(". ")[0]
    assert headline(asked("choice", decision=replace(both, comparison=(first,)))) == headline(
        asked("")
    )


def test_a_question_is_kept_in_the_plan_file(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(asked("duration")), encoding="utf-8")
    assert read_plan(path).explanation.question == "duration"
    assert "question" not in plan_document(asked(""))["explanation"]


def test_how_fast_is_said_in_tokens_per_second():
    made = answer()
    [slo, *others] = made.plan.slo.promises
    quick = replace(slo, what="tpot p95", reached_s=replace(slo.reached_s, value=0.025))
    slos = replace(made.plan.slo, promises=(quick, *others))
    words = headline(asked("speed", plan=replace(made.plan, slo=slos)))
    assert words.startswith("Each request gets 40 output tokens/s or more (by TPOT p95). ")


def test_several_pools_that_grow_are_counted_as_they_are_now():
    found = example_plan("growth")
    (pool,) = found.plan.pools
    other = replace(pool, workload="more", n_accelerators=8)
    grown = replace(found, plan=replace(found.plan, pools=(pool, other)))
    assert fleet_of(grown.plan, grown.load) == f"{pool.n_accelerators + 8} × H100 SXM"


def test_a_recomputation_is_no_node():
    text = "b200-sxm tp2 pp8 bf16 zero1 4104/1 none x8 3200 Gbit/s"
    assert "nodes of" not in with_names(text)
    assert "nodes of 8 × H100 SXM" in with_names("h100-sxm x8")

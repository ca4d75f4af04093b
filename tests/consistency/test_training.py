"""Training plans against the verbs: predict-training gives the same days, fit-training says fits.

Every plan is repeated from its own document alone: model, accelerator, count, layout, batch,
sequence, precision, framework and network of the pool.
"""

from itertools import pairwise
from math import log
from statistics import NormalDist

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuplan
from gpuplan.domain.requests.requests import StepSchedule, TrainingRequest
from gpuplan.units import DAY

TASKS = {"pretraining": "pretrain"}
MODELS = ("Llama-2-7B", "Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-32B", "Mixtral-8x7B-v0.1")
CARDS = ("h100-sxm", "h200-sxm", "a100-sxm-80gb", "l40s", "b200-sxm", "mi300x", "rtx-4090")


def scenario(model, method, *, tokens, cards=(), network=None, layout=None, **run):
    """A scenario with one run; a deadline, a batch and more as keys of the run."""
    kind = "pretraining" if method == "pretraining" else "finetuning"
    training = {"tokens": tokens, **run, **({} if kind == "pretraining" else {"method": method})}
    work = {"name": "run", "kind": kind, "model": model, "training": training}
    found = {
        "version": 1,
        "name": "a run",
        "workloads": [work | ({"layout": layout} if layout else {})],
    }
    if cards:
        found["policy"] = {"accelerators": {"allowed": list(cards)}}
    if network is not None:
        server = {"accelerators_per_node": 8, "usd_per_accelerator_h": 3.0}
        offers = [{"accelerator": card, "network_gbit_per_s": network, **server} for card in cards]
        found["prices"] = {"offers": offers}
    return found


def planned(tree):
    return gpuplan.plan(tree, n_samples=0)


def repeated(tree, pool):
    """The pool of a plan through the two verbs."""
    [work] = tree["workloads"]
    run = work["training"]
    layout, sequence = pool, run.get("sequence_tokens", 4096)
    task = TASKS.get(work["kind"]) or run["method"]
    n = layout["tp"] * layout["pp"] * layout["cp"] * layout["dp"]
    n_per_node = pool["purchases"][0]["n_accelerators_per_node"]
    words = {name: layout[name] for name in ("tp", "pp", "cp", "ep")}
    words |= {name: layout[name] for name in ("sharding", "recompute", "micro_batch")}
    common = {"task": task, "framework": pool["engine"], "lora_rank": run.get("lora_rank", 16)}
    asked = gpuplan.training_run(
        work["model"], pool["accelerator"], devices=n, seq_len=sequence,
        tokens=run["tokens"] * run.get("epochs", 1), vp=layout["vp"],
        global_batch=layout["global_batch"], precision=pool["precision"], fabric=pool["fabric"],
        devices_per_node=n_per_node, **words, **common,
    )  # fmt: skip
    fitted = gpuplan.training_fit(
        work["model"],
        f"{n}x{pool['accelerator']}",
        TrainingRequest(sequence_tokens=sequence, **words, **common),
        schedule=StepSchedule(
            vp=layout["vp"], global_batch=layout["global_batch"], n_per_node=n_per_node
        ),
    )
    return gpuplan.predict_training(asked), fitted


def held(tree, answer):
    """The law: same days with interruptions, likely fits, whole servers, in time."""
    [pool] = answer.to_dict()["plan"]["pools"]
    predicted, fitted = repeated(tree, pool)
    assert fitted.fit_probability_frac >= 0.8
    assert predicted.fit.fit_probability_frac == pytest.approx(fitted.fit_probability_frac)
    assert predicted.wall_s.value / DAY == pytest.approx(answer.plan.span_s / DAY, rel=1e-6)
    assert predicted.forecast.step.n_accelerators <= pool["n_accelerators"]
    return pool, predicted


@pytest.mark.parametrize("method", ["pretraining", "full", "lora", "qlora"])
@pytest.mark.parametrize("model", MODELS)
def test_a_plan_is_what_the_verbs_say(model, method):
    tokens = 2e11 if method == "pretraining" else 3e8
    tree = scenario(model, method, tokens=tokens, deadline_days=30)
    answer = planned(tree)
    pool, _ = held(tree, answer)
    assert answer.plan.slo.is_kept
    assert pool["sharding"] in ("none", "zero1", "zero2", "zero3", "hsdp")


@pytest.mark.parametrize("card", CARDS)
def test_every_accelerator_alone_holds_to_its_word(card):
    for model, method, tokens in (
        ("Llama-3.1-8B", "pretraining", 5e10),
        ("Llama-3.1-8B", "lora", 1e8),
        ("Llama-3.1-70B", "qlora", 2e7),
    ):
        tree = scenario(model, method, tokens=tokens, cards=[card], deadline_days=60)
        answer = planned(tree)
        if answer.plan is not None:
            held(tree, answer)
        else:
            assert answer.explanation.conflicts


RUNS = st.fixed_dictionaries(
    {"sequence_tokens": st.sampled_from([512, 2048, 4096, 8192, 32_768])},
    optional={
        "deadline_days": st.floats(0.5, 90),
        "global_batch_tokens": st.floats(65_536, 8e6),
        "epochs": st.floats(0.5, 4),
    },
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    model=st.sampled_from(MODELS),
    method=st.sampled_from(["pretraining", "full", "lora", "qlora"]),
    card=st.sampled_from(CARDS),
    tokens=st.floats(1e7, 1e11),
    run=RUNS,
)
def test_any_plan_is_what_the_verbs_say(model, method, card, tokens, run):
    tree = scenario(model, method, tokens=tokens, cards=[card], **run)
    answer = planned(tree)
    if answer.plan is None:
        assert answer.explanation.conflicts
        return
    _, predicted = held(tree, answer)
    assert predicted.forecast.mfu_frac.value < 0.8
    if "deadline_days" in run:
        assert predicted.wall_s.value <= run["deadline_days"] * DAY


def days_or_none(**changed):
    tree = scenario("Llama-3.1-70B", "pretraining", tokens=2e11, cards=["h100-sxm"], **changed)
    return planned(tree)


def test_a_faster_network_is_never_dearer():
    usd = [days_or_none(network=gbit, deadline_days=40).plan for gbit in (10, 100, 800, 3200)]
    costs = [float("inf") if plan is None else plan.total_usd for plan in usd]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 1.2 * costs[-1]


def test_recomputation_that_is_asked_for_takes_time():
    plain, again = (
        days_or_none(deadline_days=60, layout={"recompute": word}).plan for word in ("none", "full")
    )
    assert again.pools[0].steps.recompute == "full"
    assert plain.pools[0].steps.recompute == "none"
    assert again.total_usd > 1.05 * plain.total_usd


def test_more_time_is_never_dearer_by_much():
    usd = [days_or_none(deadline_days=days).plan.total_usd for days in (10, 20, 40, 80)]
    for hurried, later in pairwise(usd):
        assert later <= 1.02 * hurried


def test_a_given_utilization_sets_the_days_and_still_has_a_layout_that_fits():
    tree = scenario("Llama-3.1-70B", "pretraining", tokens=2e11, cards=["h100-sxm"],
                    deadline_days=40, mfu_frac=0.35)  # fmt: skip
    answer = planned(tree)
    [pool] = answer.plan.pools
    hand_s = 6 * 70.55e9 * 2e11 / (pool.n_accelerators * 989.4e12 * 0.35)
    stretch = answer.plan.span_s / hand_s  # failures and checkpoints beside the given utilization
    assert 1.0 < stretch < 1.04
    assert pool.layout.tp * pool.layout.pp * pool.layout.dp == pool.n_accelerators


def qlora(days):
    return planned(
        scenario("Llama-3.3-70B", "qlora", tokens=5e8, cards=["l40s"], deadline_days=days,
                 sequence_tokens=1024)
    )  # fmt: skip


def test_a_run_that_fits_and_is_too_slow_is_not_called_too_large():
    lines = qlora(1).explanation.conflicts
    assert any("days are given" in line for line in lines)
    assert not any("does not fit" in line for line in lines)


def test_small_cards_with_more_time_are_never_dearer():
    usd = [qlora(days).plan.total_usd for days in (3, 7, 35)]
    assert usd == sorted(usd, reverse=True)


def test_a_looser_budget_is_never_dearer():
    tree = scenario("Llama-3.1-8B", "full", tokens=1e9, deadline_days=3)
    plans = [planned(tree | {"budget": {"total_usd": usd}}).plan for usd in (50, 100, 400, 5000)]
    assert plans[0] is None
    usd = [plan.total_usd for plan in plans[1:]]
    assert usd == sorted(usd, reverse=True)
    assert usd[0] <= 100


def test_the_odds_of_a_plan_are_those_of_time_and_memory_together():
    tree = scenario("Qwen3-8B", "full", tokens=2e9, deadline_days=3, cards=["mi300x"])
    document = gpuplan.plan(tree, n_samples=50).to_dict()
    [pool] = document["plan"]["pools"]
    predicted, fitted = repeated(tree, pool)
    late = log(predicted.wall_s.value / (3 * DAY))
    sd = log(predicted.wall_s.high / predicted.wall_s.low) / (2 * NormalDist().inv_cdf(0.9))
    together = NormalDist().cdf(-late / sd) * fitted.fit_probability_frac
    assert document["uncertainty"]["kept_frac"] == pytest.approx(together, abs=1e-3)
    assert together >= 0.8

"""Candidates of a served model: every accelerator is proposed, every rejection has a reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.software import SoftwareStack
from gpuplan.domain.scenario.demand import LatencyLimit, Slo
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.scenario.terms import Choice
from gpuplan.domain.scenario.workload import ModelRef
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.inference.deployment import evaluated
from gpuplan.studies.sizing.candidates import _layout_problems, candidates_of
from gpuplan.studies.sizing.language import by_price
from gpuplan.studies.sizing.task import SizingContext, task_of

EXAMPLES = Path(__file__).parents[4] / "examples"
CONTEXT = SizingContext(catalog=read_catalog())
CHAT = read_scenario(EXAMPLES / "chat.yaml")


def task(*, cards=("H100",), precisions=None, policy_precisions=None, limits=None, **work):
    [workload] = CHAT.workloads
    changed = replace(workload.work, **work)
    if limits is not None:
        changed = replace(changed, slo=Slo(limits=limits))
    workload = replace(workload, work=changed)
    if precisions is not None:
        workload = replace(workload, precisions=precisions)
    policy = replace(CHAT.policy, accelerators=Choice(allowed=cards))
    if policy_precisions is not None:
        policy = replace(policy, precisions=policy_precisions)
    return task_of(workload, replace(CHAT, workloads=(workload,), policy=policy), CONTEXT)


def test_every_accelerator_is_kept_or_rejected():
    pruned, _ = candidates_of(task())
    seen = {str(c.accelerator) for c in pruned.accepted}
    seen |= {str(r.candidate.accelerator) for r in pruned.rejected}
    assert seen == {str(x) for x in CONTEXT.catalog.accelerators}
    assert {str(c.accelerator) for c in pruned.accepted} == {"h100-sxm"}
    assert all(r.reason and r.relaxation for r in pruned.rejected)


def test_what_is_kept_has_room_for_its_longest_request():
    found = task()
    pruned, _ = candidates_of(found)
    for candidate in pruned.accepted:
        memory = found.evaluator.longest_memory(candidate)
        assert memory.cache_bytes >= memory.sequence_bytes
    for rejected in pruned.rejected:
        if rejected.constraint == "memory":
            memory = found.evaluator.longest_memory(rejected.candidate)
            assert memory.cache_bytes < memory.sequence_bytes
            assert rejected.gap_ratio > 1


def test_a_context_beyond_the_model_rejects_all_that_would_run():
    pruned, _ = candidates_of(task(max_context_tokens=10_000_000))
    assert pruned.accepted == ()
    assert "context" in {r.constraint for r in pruned.rejected}


def test_an_slo_below_the_idle_latency_is_rejected_with_the_gap():
    limit = LatencyLimit(metric="tpot", statistic="p95", limit_s=1e-4)
    found = task(limits=(limit,))
    pruned, _ = candidates_of(found)
    assert pruned.accepted == ()
    slow = [r for r in pruned.rejected if r.constraint == "tpot"]
    assert slow
    for rejected in slow:
        idle = found.evaluator.idle_times(rejected.candidate)
        assert rejected.gap_ratio == pytest.approx(idle.tpot_s / limit.limit_s)


def test_idle_latencies_add_up():
    found = task()
    [first, *_] = candidates_of(found)[0].accepted
    idle = found.evaluator.idle_times(first)
    rest = found.serving_load.output_tokens - 1
    assert idle.e2e_s == pytest.approx(idle.ttft_s + rest * idle.tpot_s)
    assert idle.of("itl") == idle.tpot_s


def test_precisions_of_workload_and_policy_must_meet():
    pruned, assumed = candidates_of(task(precisions=("fp8", "bf16"), policy_precisions=("bf16",)))
    assert {c.precision for c in pruned.accepted} <= {"bf16"}
    assert "precision" not in {note.what for note in assumed}
    with pytest.raises(InputError, match="against"):
        candidates_of(task(precisions=("fp8",), policy_precisions=("bf16",)))
    with pytest.raises(InputError, match="use fp8"):
        candidates_of(task(precisions=("fp7",)))


def test_the_published_precision_is_assumed_where_none_is_named():
    _, assumed = candidates_of(task(precisions=(), policy_precisions=()))
    assert {"engine", "precision"} <= {note.what for note in assumed}


def test_fleets_are_ordered_by_price_and_those_without_one_come_last():
    found = task()
    cards = CONTEXT.catalog.accelerators
    fleets = []
    for name in ("h100-sxm", "l4", "b200-sxm"):
        candidate = found.candidate(cards[name], "fp8")
        fleets.append(_fleet(found, candidate))
    prices = {"h100-sxm": 3.0, "b200-sxm": 2.0}
    ordered = by_price(fleets, lambda candidate, n: prices.get(candidate.accelerator))
    assert [str(s.candidate.accelerator) for s in ordered] == ["b200-sxm", "h100-sxm", "l4"]


def on_sglang(found, version="0.5.23"):
    software = SoftwareStack(framework="sglang", framework_version=version)
    return replace(found, scenario=replace(found.scenario, site=Site(software=software)))


def test_a_site_that_runs_sglang_is_planned_with_its_rules():
    found = on_sglang(task())
    pruned, assumed = candidates_of(found)
    assert {c.engine.name for c in pruned.accepted} == {"sglang"}
    assert any(a.what == "engine" and a.value.startswith("sglang 0.5.23") for a in assumed)
    limits = found.evaluator.prepared(pruned.accepted[0]).limits
    assert limits.admission.prefill_first is not None
    assert limits.admission.prefill_first.chunk_tokens == 8192
    assert limits.admission.is_ahead
    plain = candidates_of(task())[0].accepted[0]
    assert task().evaluator.prepared(plain).limits.admission.prefill_first is None


def test_a_site_that_runs_vllm_is_planned_with_the_rules_of_its_version():
    site = Site(software=SoftwareStack(framework="vllm", framework_version="0.15.1"))
    found = task()
    found = replace(found, scenario=replace(found.scenario, site=site))
    [first, *_] = candidates_of(found)[0].accepted
    limits = found.evaluator.prepared(first).limits
    assert first.engine.version == "0.15.1"
    assert limits.admission.is_ahead
    assert limits.caches_prefixes
    assert not limits.admission.reserves_prompt
    # A simulation of the same setup has the same engine, start-up included.
    assert evaluated(found.evaluator.setup(first), context_tokens=found.context_tokens).limits == (
        limits
    )


def test_what_requests_ask_for_reaches_the_engine():
    [workload] = CHAT.workloads
    found = on_sglang(task(request=replace(workload.work.request, max_tokens=2048)))
    limits = found.evaluator.prepared(candidates_of(found)[0].accepted[0]).limits
    assert limits.admission.prefill_first.max_tokens == 2048


def test_data_parallel_ranks_of_sglang_are_rejected_by_name():
    found = on_sglang(task())
    kept = candidates_of(found)[0].accepted[0]
    wide = replace(kept, layout=replace(kept.layout, dp=2))
    [problem] = _layout_problems(found.evaluator, wide)
    assert "SGLang" in problem.what
    assert not _layout_problems(found.evaluator, kept)


def _fleet(found, candidate):
    rate = found.evaluator.ranged(candidates_of(found)[0].accepted[0]).estimate(
        "output_tokens_per_s", 1.0
    )
    return found.fleet_in_proportion(
        candidate, rate, full_per_s=2.0, safe_frac=0.5, method="analytic", band=""
    )


def test_without_nvlink_tensor_parallelism_and_stages_are_both_tried():
    """A 70B model in FP8 takes four RTX 4090 or more, which PCIe alone joins."""
    limits = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.2),)
    pruned, _ = candidates_of(task(cards=("RTX 4090",), precisions=("fp8",), limits=limits))
    layouts = {(c.layout.tp, c.layout.pp) for c in pruned.accepted if c.precision == "fp8"}
    assert any(tp > 1 and pp == 1 for tp, pp in layouts)
    assert any(tp == 1 and pp > 1 for tp, pp in layouts)
    switched, _ = candidates_of(task(cards=("H100",), precisions=("fp8",)))
    assert {c.layout.pp for c in switched.accepted} == {1}


def test_a_device_without_bf16_runs_fp16():
    pruned, _ = candidates_of(task(cards=("V100",), precisions=("bf16",)))
    mine = [r.candidate for r in pruned.rejected if str(r.candidate.accelerator).startswith("v100")]
    mine += pruned.accepted
    assert {"fp16"} <= {each.precision for each in mine}
    assert all(each.precision != "bf16" and each.cache_precision != "bf16" for each in mine)


def test_an_accelerator_that_is_named_is_compared_at_narrower_precisions():
    pruned, _ = candidates_of(task(cards=("L4",), precisions=("bf16",)))
    seen = [*pruned.accepted, *(r.candidate for r in pruned.rejected)]
    on_l4 = {each.precision for each in seen if str(each.accelerator) == "l4"}
    assert {"bf16", "fp8", "int4"} <= on_l4


def test_experts_over_servers_are_tried_where_one_server_is_full_of_weights():
    [workload] = CHAT.workloads
    workload = replace(workload, model=ModelRef(name="DeepSeek-R1"), precisions=())
    policy = replace(CHAT.policy, accelerators=Choice(allowed=("H200",)))
    scenario = replace(CHAT, workloads=(workload,), policy=policy)

    def layouts(networks):
        context = SizingContext(catalog=CONTEXT.catalog, networks=networks)
        pruned, _ = candidates_of(task_of(workload, scenario, context))
        return {(each.layout.dp, each.layout.ep) for each in pruned.accepted}

    assert (16, 16) in layouts({"h200-sxm": (400e9,)})
    assert (16, 16) not in layouts({})


def test_a_format_of_the_same_width_is_not_called_narrower():
    [workload] = CHAT.workloads
    workload = replace(workload, model=ModelRef(name="DeepSeek-R1"), precisions=())
    policy = replace(CHAT.policy, accelerators=Choice(allowed=("H200",)))
    scenario = replace(CHAT, workloads=(workload,), policy=policy)
    pruned, _ = candidates_of(task_of(workload, scenario, CONTEXT))
    seen = {each.precision for each in (*pruned.accepted, *(r.candidate for r in pruned.rejected))}
    assert "fp8-block" in seen
    assert "fp8" not in seen

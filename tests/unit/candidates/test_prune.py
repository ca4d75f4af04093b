"""Every proposal is kept or leaves with a reason."""

from dataclasses import replace

import pytest

from gpuplan.candidates import prune as cut
from gpuplan.candidates.propose import (
    ProposalSpec,
    layouts_for,
    on_shares,
    over_servers,
    propose,
    shared_device,
    shares_of,
    with_stages,
    with_wider_experts,
)
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.scenario.workload import Layout
from gpuplan.errors import Problem
from gpuplan.performance.serving.engines import vllm_settings
from gpuplan.units import GB

CARDS = {str(name): card for name, card in read_catalog().accelerators.items()}
ASK = ProposalSpec(
    workload="w", precisions=("fp8",), cache_precision="bf16", narrow=(), is_moe=False,
    engine=EngineChoice(name="vllm", version="0.15"), layout=None, limits_gaps=False,
)  # fmt: skip
FOUND = propose(ASK, CARDS.values(), vllm_settings)


def test_every_accelerator_is_proposed_processors_too():
    assert {str(c.accelerator) for c in FOUND} == set(CARDS)
    vendors = {CARDS[str(c.accelerator)].vendor for c in FOUND}
    assert {"NVIDIA", "AMD", "Intel", "Google", "AWS"} <= vendors
    assert any(CARDS[str(c.accelerator)].is_cpu for c in FOUND)


def test_names_are_unique():
    assert len({c.name for c in FOUND}) == len(FOUND)


def no_fp8(candidate):
    has = "fp8" in CARDS[candidate.accelerator].peak_flop_per_s
    return [] if has else [Problem("--precision", "has no fp8", "use bf16")]


def test_kept_and_rejected_are_all():
    checks = [
        cut.policy_check(frozenset(), frozenset({"t4"})),
        cut.problem_check("precision", no_fp8),
        cut.domain_check(CARDS, is_crossing_allowed=False),
    ]
    pruned = cut.prune(FOUND, checks)
    assert len(pruned.accepted) + len(pruned.rejected) == len(FOUND)
    assert all(r.reason and r.relaxation for r in pruned.rejected)
    assert {r.constraint for r in pruned.rejected} == {"policy", "precision"}


def named(card, tp=1):
    return next(c for c in FOUND if c.accelerator == card and c.layout.tp == tp)


@pytest.mark.parametrize(
    ("card", "tp", "is_kept"),
    [("h100-sxm", 8, True), ("h100-sxm", 16, False), ("h100-pcie", 4, True), ("l40s", 2, True),
     ("l40s", 16, False), ("gb200", 64, True), ("mi300x", 8, True)],
)  # fmt: skip
def test_tensor_parallelism_stays_inside_its_server_or_domain(card, tp, is_kept):
    found = replace(named(card), layout=ServingLayout(tp=tp))
    assert (cut.domain_check(CARDS, is_crossing_allowed=False)(found) is None) == is_kept
    assert cut.domain_check(CARDS, is_crossing_allowed=True)(found) is None


def test_an_idle_replica_that_is_too_slow_says_by_how_much():
    limits = (LatencyLimit(metric="itl", statistic="p95", limit_s=0.040),)
    floors = cut.IdleTimes(ttft_s=0.1, tpot_s=0.079, e2e_s=9.0)
    rejected = cut.idle_check(limits, lambda c: floors)(named("a40", 2))
    assert rejected is not None
    assert rejected.constraint == "tpot"
    assert "79 ms" in rejected.reason
    assert "83 ms" in rejected.relaxation
    fast = replace(floors, tpot_s=0.039)
    assert cut.idle_check(limits, lambda c: fast)(named("a40", 2)) is None


def test_the_user_may_insist_on_a_layout():
    layouts = layouts_for(replace(ASK, layout=Layout(n_tensor=4, n_pipeline=2)), CARDS["l4"])
    assert [(x.tp, x.pp) for x in layouts] == [(4, 2)]
    experts = layouts_for(replace(ASK, layout=Layout(n_data=8, n_expert=8)), CARDS["h200-sxm"])
    assert experts == [ServingLayout(dp=8, ep=8)]
    assert len(layouts_for(replace(ASK, layout=Layout(sharding="fsdp")), CARDS["l4"])) > 1


def test_experts_are_dealt_out_as_well_as_cut():
    layouts = layouts_for(replace(ASK, is_moe=True), CARDS["h200-sxm"])
    assert {(x.tp, x.dp, x.ep) for x in layouts} >= {(8, 1, 1), (8, 1, 8), (1, 8, 8)}


def test_stages_stand_on_the_widest_layout():
    staged = with_stages([named("h100-sxm", 4), named("h100-sxm", 8), named("l4")])
    assert {(c.accelerator, c.layout.tp) for c in staged} == {("h100-sxm", 8), ("l4", 1)}
    assert {c.layout.pp for c in staged} == {2, 4, 8, 16}


def test_stages_are_tried_over_every_stated_network():
    staged = with_stages([named("h100-sxm", 8)])[:1]
    spread = over_servers([*staged, named("h100-sxm", 8)], {"h100-sxm": (50e9, 400e9)}, CARDS)
    assert [c.layout.network_bytes_per_s for c in spread] == [50e9, 400e9, None]
    assert len({c.name for c in spread}) == 3
    assert [c.layout.network_bytes_per_s for c in over_servers(staged, {}, CARDS)] == [None]
    small = replace(staged[0], layout=ServingLayout(tp=2, pp=2))
    rates = [
        c.layout.network_bytes_per_s for c in over_servers([small], {"h100-sxm": (50e9,)}, CARDS)
    ]
    assert rates == [None, 50e9]


def test_experts_are_dealt_over_servers_only_at_stated_rates():
    short = replace(named("h100-sxm"), layout=ServingLayout(dp=8, ep=8))
    wide = with_wider_experts([short, named("h100-sxm", 8)])
    assert [(c.layout.dp, c.layout.ep) for c in wide] == [(16, 16), (32, 32)]
    spread = over_servers(wide[:1], {"h100-sxm": (50e9, 400e9)}, CARDS)
    assert [c.layout.network_bytes_per_s for c in spread] == [50e9, 400e9]
    check = cut.domain_check(CARDS, is_crossing_allowed=False)
    assert [check(c) is None for c in (*spread, *over_servers(wide[:1], {}, CARDS))] == [
        True,
        True,
        False,
    ]
    # Inside an NVLink domain of 72 no network is asked for.
    inside = replace(named("gb200"), layout=ServingLayout(dp=16, ep=16))
    [same] = over_servers([inside], {"gb200": (50e9,)}, CARDS)
    assert same.layout.network_bytes_per_s is None


def test_a_replica_that_no_server_holds_is_rejected_with_what_would_help():
    def price(candidate, n_replicas):
        layout = candidate.layout
        is_placed = layout.n_accelerators <= 8 or layout.network_bytes_per_s is not None
        return float(n_replicas) if is_placed else None

    check = cut.placement_check(price)
    [staged, *_] = with_stages([named("h100-sxm", 8)])
    assert check(named("h100-sxm", 8)) is None
    found = check(staged)
    assert found.constraint == "island"
    assert "no offer states a network" in found.reason
    assert "network_gbit_per_s" in found.relaxation
    assert check(replace(staged, layout=replace(staged.layout, network_bytes_per_s=1e9))) is None
    wide = named("gb200", 64)
    assert "no offer has 64 gb200 in one server" in check(wide).reason
    # What has no price at all is said elsewhere.
    assert cut.placement_check(lambda *_: None)(staged) is None


def test_small_chunks_are_tried_where_single_gaps_are_promised():
    found = propose(replace(ASK, limits_gaps=True), [CARDS["h100-sxm"]], vllm_settings)
    assert {c.settings.max_batch_tokens for c in found} == {8192, 2048, 512}


def test_parts_of_an_accelerator_hold_and_do_their_share():
    catalog = read_catalog()
    card = CARDS["h100-sxm"]
    shares = list(shares_of(card, catalog.mig_profiles_of(card.id), 15 * GB))
    assert {share.kind for share in shares} == {"mig"}
    assert all(share.memory_bytes >= 15 * GB for share in shares)
    for share in shares:
        part = shared_device(card, share)
        assert part.memory.visible_bytes == share.memory_bytes
        assert part.peak_flop_per_s["bf16"] < card.peak_flop_per_s["bf16"]
        assert part.memory.bytes_per_s < card.memory.bytes_per_s
    turns = list(shares_of(CARDS["l4"], (), 5 * GB))
    assert [share.n_per_accelerator for share in turns] == [2, 4]
    [half] = on_shares(ASK, CARDS["l4"], turns[:1], vllm_settings)
    assert half.n_accelerators_for(3) == 2


def test_too_many_accelerators_are_so_many_times_too_many():
    check = cut.count_check(lambda _: 9, 3)
    [whole] = [c for c in FOUND if c.accelerator == "l4" and c.layout.name == "TP1"][:1]
    assert check(whole).gap_ratio == pytest.approx(3.0)
    assert cut.count_check(lambda _: 3, 3)(whole) is None

"""What experts cost on links and in products, by arithmetic that a reader can redo."""

from dataclasses import replace
from math import comb

import pytest

from fakes.models import HIDDEN, moe_group
from fakes.training import fabric
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.performance.training import process_groups as links
from gpuplan.performance.training.layers import Split, expert_width, layer_work, n_reached

SPLIT = Split(
    n_tokens=4096.0, sequence_tokens=4096.0, tp=1, ep=64, sequence_parallel=1, operand_bytes=2.0
)


@pytest.mark.parametrize(("n_active", "n_places"), [(1, 8), (2, 8), (8, 8), (22, 8), (8, 64)])
def test_places_that_a_token_reaches_are_counted_once(n_active, n_places):
    # Inclusion and exclusion: the chance that all experts miss a place, place by place.
    missed = sum((-1) ** k * comb(n_active, k) * (1 / n_places) ** k for k in range(n_active + 1))
    assert n_reached(n_active, n_places) == pytest.approx(n_places * (1 - missed))
    assert n_reached(n_active, n_places) <= min(n_active, n_places)


def test_islands_get_every_token_at_most_once():
    group = moe_group()
    inside = layer_work(group, HIDDEN, SPLIT)
    far = layer_work(group, HIDDEN, SPLIT._replace(n_expert_islands=8))
    token_bytes = 2.0 * 4096 * HIDDEN
    assert inside.far_bytes == pytest.approx(token_bytes)
    assert far.far_bytes <= 8 * token_bytes
    assert far.far_bytes <= far.all_to_all_bytes


def test_narrowed_tokens_travel_narrow_and_pay_the_way_in_and_out():
    group = moe_group()
    feed = group.feed_forward
    narrow_feed = replace(feed, n_expert_matrix_params=feed.n_expert_matrix_params // 4)
    narrow = layer_work(replace(group, feed_forward=narrow_feed), HIDDEN, SPLIT)
    wide = layer_work(group, HIDDEN, SPLIT)
    assert expert_width(feed, HIDDEN) == HIDDEN
    assert expert_width(narrow_feed, HIDDEN) == HIDDEN // 4
    assert narrow.all_to_all_bytes == pytest.approx(wide.all_to_all_bytes / 4)
    assert narrow.expert_flop == pytest.approx(wide.expert_flop / 4)
    way = 2 * 2.0 * 4096 * HIDDEN * (HIDDEN // 4)
    assert narrow.matmul_flop - wide.matmul_flop == pytest.approx(way)


def test_exchange_over_islands_waits_for_the_slower_link():
    group = links.process_group("ep", ParallelLayout(dp=64, ep=64), fabric())
    assert group.n_islands == 8
    slow = links.all_to_all_s(1e6, 1e9, group, fabric())
    slower = links.all_to_all_s(1e6, 2e9, group, fabric())
    assert slower == pytest.approx(2 * slow, rel=0.01)
    # 7/8 of the message leaves over one adapter of 50 GB/s at nine tenths of its rate.
    assert slow == pytest.approx(7 / 8 * 1e9 / 45e9, rel=0.01)
    assert links.all_to_all_s(1e9, 1e3, group, fabric()) > slow / 20


def test_a_grouped_kernel_keeps_activation_and_casts_of_gated_experts_inside():
    group = moe_group()
    narrow = SPLIT._replace(operand_bytes=1.03, cast_ratio=2.0)
    apart = layer_work(group, HIDDEN, narrow)
    fused = layer_work(group, HIDDEN, narrow._replace(fuses_experts=True))
    assert fused.expert_flop == apart.expert_flop
    assert fused.all_to_all_bytes == apart.all_to_all_bytes
    assert fused.inner_bytes < apart.inner_bytes
    assert fused.cast_elements < apart.cast_elements
    plain = replace(group, feed_forward=replace(group.feed_forward, is_gated=False))
    assert layer_work(plain, HIDDEN, narrow._replace(fuses_experts=True)) == layer_work(
        plain, HIDDEN, narrow
    )

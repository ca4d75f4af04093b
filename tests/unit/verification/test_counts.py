"""Counts, nodes and policy."""

import math
from dataclasses import replace

import pytest

from gpuplan.verification.counts import count_checks


def test_an_absent_figure_is_found(document, facts, failed):
    document["plan"]["energy_j_per_month"] = math.nan
    assert "figures: all finite" in failed(count_checks(document, facts))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_shares_lie_between_nothing_and_all(document, pool, facts, failed, share):
    pool["use"]["peak_frac"] = share
    assert "figures: shares between 0 and 1" in failed(count_checks(document, facts))


@pytest.mark.parametrize("text", ["0 x h100-sxm is the cheapest", "0 × H100 SXM"])
def test_a_fleet_of_nothing_is_found(document, facts, failed, text):
    document["alternatives"].append({"fleet": text})
    assert "figures: no fleet of nothing" in failed(count_checks(document, facts))


def test_no_replicas_serve_nobody(document, pool, facts, failed):
    pool["n_replicas"] = 0
    assert "pool assistant: replicas" in failed(count_checks(document, facts))


def test_spares_alone_serve_nobody(document, pool, facts, failed):
    pool["n_spare_replicas"] = pool["n_replicas"]
    assert "pool assistant: spares are replicas" in failed(count_checks(document, facts))


def test_replicas_need_their_accelerators(document, pool, facts, failed):
    pool["tp"] = 8
    found = failed(count_checks(document, facts))
    assert found == ["pool assistant: accelerators of its replicas"]


def test_accelerators_are_in_bought_nodes(document, pool, facts, failed):
    pool["n_accelerators"] += 1
    assert failed(count_checks(document, facts)) == ["h100-sxm: accelerators in bought nodes"]


def test_slices_take_a_part_of_a_card(document, pool, facts, failed):
    pool["share"] = "1/4"
    pool["n_replicas"] = 4 * pool["n_accelerators"]
    assert not failed(count_checks(document, facts))
    pool["n_replicas"] += 1
    assert failed(count_checks(document, facts)) == ["pool assistant: accelerators of its replicas"]


def test_a_line_without_nodes_is_found(document, pool, facts, failed):
    pool["purchases"][0]["n_nodes"] = 0
    assert any(name.startswith("nodes of") for name in failed(count_checks(document, facts)))


def test_the_policy_is_kept(document, pool, facts, failed):
    pool["accelerator"] = "l40s"
    assert "policy: accelerators" in failed(count_checks(document, facts))
    assert "policy: accelerators" in failed(
        count_checks(document, replace(facts, allowed=frozenset(), forbidden=frozenset({"l40s"})))
    )


def test_spot_is_used_only_where_it_is_allowed(document, pool, facts, failed):
    pool["purchases"][0]["purchase"] = "spot"
    assert failed(count_checks(document, facts)) == ["policy: spot capacity"]

"""Ranges from a ledger: what they hold of groups never seen, and what makes them wider."""

import numpy as np
import pytest
from fits.ranges import group_weights, learned, least_halves, with_tails

from gpuplan.calibration.inference.ranges import Line, errors_by_split
from gpuplan.domain.calibration.constants import RangeRule, range_keys

KNOWN, NEW = "known model and accelerator", "new accelerator"


def ledger(seed: int, n_groups: int = 60, *, sd: float = 0.3, novelty: str = KNOWN, **changes: str):
    """Groups of ten rows that err together, and rows that err by themselves."""
    rng = np.random.default_rng(seed)
    lines = []
    for group in range(n_groups):
        bias = rng.normal(0, sd)
        where = {"metric": "tpot_mean_ms", "regime": "poisson", "kind": "dense|cuda", **changes}
        lines += [
            Line(**where, group=f"{seed}-{group}", novelty=novelty, log_ratio=bias + e)
            for e in rng.normal(0, 0.5 * sd, 10)
        ]
    return lines


def coverage(rule: RangeRule, lines) -> float:
    return float(np.mean([abs(line.log_ratio) <= rule.half(line.keys) for line in lines]))


def test_four_of_five_rows_of_new_groups_are_inside():
    found = [coverage(learned(ledger(seed)), ledger(100 + seed)) for seed in range(8)]
    assert np.mean(found) == pytest.approx(0.81, abs=0.04)


def test_a_group_counts_as_the_root_of_its_rows():
    lines = [*ledger(1, 1), ledger(2, 1)[0]]
    weights = group_weights(lines)
    assert weights[:10].sum() == pytest.approx(10**0.5)
    assert weights[-1] == 1.0


def test_few_groups_ask_for_more_than_many():
    few = np.mean([learned(ledger(s, 6)).half(ledger(s, 1)[0].keys) for s in range(12)])
    many = np.mean([learned(ledger(s, 80)).half(ledger(s, 1)[0].keys) for s in range(4)])
    assert few > many


def test_what_is_new_is_as_wide_as_its_own_lines_were():
    rule = learned([*ledger(1), *ledger(2, 30, sd=0.9, novelty=NEW)])
    known, new = (
        rule.half(range_keys("tpot_mean_ms", "poisson", kind="dense|cuda", novelty=kind))
        for kind in (KNOWN, NEW)
    )
    assert 1.8 < new / known < 4.0


def test_what_is_newer_is_never_narrower():
    rule = learned([*ledger(1), *ledger(2, sd=0.1, novelty=NEW)])
    known, new = (rule.log_half[f"novelty|{kind}"] for kind in (KNOWN, NEW))
    assert new == known


def test_a_regime_without_lines_takes_its_metric():
    rule = learned([*ledger(1), *ledger(2, sd=0.8, metric="ttft_mean_ms")])
    halves = {
        metric: rule.half(range_keys(metric, "prefill", kind="dense|x", novelty=KNOWN))
        for metric in ("tpot_mean_ms", "ttft_mean_ms")
    }
    assert halves["ttft_mean_ms"] > 1.3 * halves["tpot_mean_ms"]


def test_a_port_leans_on_its_kind_of_network_and_experts_on_their_regime():
    lines = [
        *ledger(1),
        *ledger(2, 30, sd=0.6, kind="experts|cuda"),
        *ledger(3, 1, kind="dense|port"),
    ]
    rule = learned(lines)
    dense, port, experts, other = (
        rule.half(range_keys("tpot_mean_ms", "poisson", kind=kind, novelty=KNOWN))
        for kind in ("dense|cuda", "dense|port", "experts|cuda", "hybrid|cuda")
    )
    assert dense < other < experts
    assert 0.5 * dense < port < 1.3 * dense


def test_submissions_at_their_limit_say_nothing_of_other_loads():
    alone = learned(ledger(1))
    rule = learned([*ledger(1), *ledger(2, sd=1.5, regime="mlperf_server")])
    keys = ledger(1)[0].keys
    assert rule.half(keys) == pytest.approx(alone.half(keys), rel=0.06)
    assert rule.half(ledger(2, 1, regime="mlperf_server")[0].keys) > 3 * rule.half(keys)


def test_lines_of_no_kind_stand_beside_others():
    lines = [*ledger(1), *ledger(2, sd=0.6, regime="mlperf_server", kind="")]
    rule = learned(lines)
    narrow, wide = (
        rule.half(range_keys("tpot_mean_ms", regime, kind="dense|cuda", novelty=KNOWN))
        for regime in ("poisson", "mlperf_server")
    )
    assert wide > 1.5 * narrow


def test_percentiles_have_a_rule_of_their_own():
    tails = [line._replace(metric="tpot_p99_ms", log_ratio=1.0) for line in ledger(3, sd=0.9)]
    means = learned(ledger(1))
    whole = with_tails(means, learned(tails, ("tpot_p99_ms",)))
    assert whole.half(ledger(1)[0].keys) == means.half(ledger(1)[0].keys)
    assert whole.middle("tpot_p99_ms", "poisson") == pytest.approx(1.0)
    assert whole.half(tails[0].keys) < 0.2


def test_percentiles_lie_about_their_usual_ratio_to_the_mean():
    lines = [line._replace(log_ratio=line.log_ratio + 1.0) for line in ledger(3)]
    rule = learned(lines, ("tpot_mean_ms",))
    assert rule.middle("tpot_mean_ms", "poisson") == pytest.approx(1.0, abs=0.1)
    assert rule.middle("tpot_mean_ms", "max_load") == rule.middle("tpot_mean_ms", "poisson")
    assert rule.half(lines[0].keys) < 0.8


def test_no_range_is_narrower_than_a_repeated_measurement():
    rule = RangeRule(log_half={"": -9.0}, log_middle={}, n_groups=1)
    assert rule.half(("",)) == 0.03


def test_errors_of_splits_are_those_of_hand_arithmetic():
    rule = RangeRule(log_half={"m": float(np.log(0.2))}, log_middle={}, n_groups=1)
    lines = [
        Line("m", "max_load", "dense|cuda", str(i), KNOWN, float(np.log(ratio)))
        for i, ratio in enumerate((1.0, 1.1, 2.0))
    ]
    found = errors_by_split({"source": lines}, rule)["source"]["max_load m"]
    assert (found.n, found.range_coverage) == (3, pytest.approx(2 / 3))
    assert found.median_ape == pytest.approx(1 - 1 / 1.1)


def test_three_near_groups_do_not_outvote_their_regime():
    """The same groups stand at every level below the kind, and speak once."""
    lines = [*ledger(1, 15, kind="experts|cuda|vllm"), *ledger(2, 3, sd=0.03)]
    chain = [line._replace(kind="dense|cuda|trtllm") for line in lines[-30:]]
    rule, alone = learned([*lines[:150], *chain]), learned(lines)
    dense, kind_alone = (
        found.half(range_keys("tpot_mean_ms", "poisson", kind="dense|cuda|trtllm", novelty=KNOWN))
        for found in (rule, alone)
    )
    regime = rule.half(range_keys("tpot_mean_ms", "poisson", kind="", novelty=KNOWN))
    assert dense == pytest.approx(kind_alone, rel=1e-3)
    assert 0.25 * regime < dense < 0.6 * regime


def test_a_metric_says_nothing_of_another():
    alone = learned(ledger(1))
    both = learned([*ledger(1), *ledger(2, sd=2.0, metric="ttft_mean_ms")])
    keys = ledger(1)[0].keys
    assert both.half(keys) == alone.half(keys)


def test_no_level_is_narrower_than_rows_held_out_ask_for():
    near, far = ledger(1, sd=0.1), ledger(2, sd=0.4)
    least = least_halves(far)
    rule = learned(near, log_least=least)
    keys = near[0].keys
    assert rule.half(keys) == pytest.approx(np.exp(least[keys[-2]]), rel=1e-3)
    assert rule.half(keys) > 2 * learned(near).half(keys)
    assert learned(far, log_least=least_halves(near)).half(keys) == learned(far).half(keys)


def test_rows_held_out_widen_no_level_of_which_the_ledger_has_more_groups():
    near, far = ledger(1, sd=0.1), ledger(2, sd=0.4)
    few = [line for line in far if line.group == far[0].group]
    assert least_halves(few, near) == {}
    assert least_halves(far, few) == least_halves(far)


def test_a_level_that_only_rows_held_out_have_is_as_wide_as_they_ask():
    near = ledger(1, sd=0.1)
    other = [line._replace(kind="dense|cuda|other") for line in ledger(2, sd=0.4)]
    rule = learned(near, log_least=least_halves(other, near))
    assert rule.half(other[0].keys) > 2 * rule.half(near[0].keys)


def test_a_regime_says_nothing_of_another_that_is_measured_as_well():
    closed = ledger(1, sd=0.1)
    static = [line._replace(regime="static_batch") for line in ledger(2, sd=0.8)]
    alone, both = learned(closed), learned([*closed, *static])
    assert both.half(closed[0].keys) == pytest.approx(alone.half(closed[0].keys), rel=1e-3)

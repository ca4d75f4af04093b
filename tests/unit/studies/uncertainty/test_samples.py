"""Samples, regret and tornado agree with arithmetic; growth with logarithms."""

import numpy as np
import pytest

from fakes.fleets import curve, demand
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.ranges import Range, exactly
from gpuplan.studies.planning.billed import BilledLoads
from gpuplan.studies.planning.curves import cost_usd_per_month, load_crossovers, winners
from gpuplan.studies.uncertainty.samples import (
    ComparedFleets,
    draw_samples,
    mean_growth,
    uncertainty_of,
    whole_uncertainty,
    with_runs_beside,
)


def found(curves, peak=10.0, n=400, growth=None, base=None):
    load = demand(peak)
    growth = growth or exactly(0.0)
    draws = draw_samples(n, 0, growth, n_months=36, kinds=[c.kind for c in curves])
    usd = base or cost_usd_per_month(curves[0], load)
    return uncertainty_of(compared(curves, peak=peak, base=usd), draws, seed=0)


def billed(curve, load, usd):
    """The chosen fleet over its load, as its curve has it, brought to the bill."""
    ratios = np.arange(5, 401) / 100
    base = curve.n_base_nodes * curve.base_usd_per_node_h * 730
    costs = np.array([cost_usd_per_month(curve, load, factor=float(x)) for x in ratios])
    scale = usd / cost_usd_per_month(curve, load)
    fixed = np.full(len(ratios), base) if not curve.is_committed else costs
    return BilledLoads(ratios, fixed * scale, (costs - fixed) * scale)


def test_hours_are_paid_by_need_or_always():
    load = demand(10.0, fracs=(1.0, 0.2), hours=(42.0, 126.0))
    by_need = curve("a", 1.0, 2.0)
    assert cost_usd_per_month(by_need, load) == pytest.approx(730 * 2 * (10 * 0.25 + 2 * 0.75))
    always = curve("a", 1.0, 2.0, is_committed=True)
    assert cost_usd_per_month(always, load) == pytest.approx(730 * 2 * 10)
    base = curve("a", 1.0, 2.0, n_base_nodes=2, base_usd_per_node_h=1.0)
    assert cost_usd_per_month(base, load) == pytest.approx(730 * (2 * 1 + 2 * 8 * 0.25))


def test_crossing_is_where_prices_meet():
    small, large = curve("small", 1.0, 1.0), curve("large", 10.0, 4.0)
    steps = winners([small, large], demand(3.0))
    assert [step.curve.kind for step in steps][:2] == ["small", "large"]
    # Five small ones are dearer than a large one; four cost the same, and the leader stays.
    assert steps[1].load == pytest.approx(4.0, rel=0.01)
    assert load_crossovers([small, large], demand(3.0), unit="requests/s")


def test_same_seed_same_samples():
    assert found([curve("a", 1.0, 1.0)]) == found([curve("a", 1.0, 1.0)])


def test_the_range_holds_the_plan_and_regret_is_never_negative():
    answer = found([curve("a", 1.0, 1.0), curve("b", 3.0, 3.5)])
    cost = answer.cost_usd_per_month
    assert cost.low <= cost.value <= cost.high
    assert all(row.p95_regret_usd_per_month >= 0 for row in answer.rows)
    assert answer.least_regret in {"a", "b"}


def test_a_fleet_that_is_always_cheaper_has_no_regret():
    dear = curve("b", 1.0, 10.0)
    answer = found([curve("a", 1.0, 1.0), dear])
    best = next(row for row in answer.rows if row.fleet == "a")
    assert best.p95_regret_usd_per_month == 0
    assert answer.least_regret == "a"


def test_headroom_decides_how_often_the_plan_is_enough():
    tight = found([curve("a", 1.0, 1.0)], peak=10.0).kept_frac
    roomy = found([curve("a", 1.0, 1.0, n_spare=4)], peak=10.0).kept_frac
    assert 0.35 < tight < 0.65
    assert roomy > 0.95


def test_slow_models_are_sampled():
    sure = found([curve("a", 1.0, 1.0, n_spare=2)]).kept_frac
    unsure = found([curve("a", 1.0, 1.0, n_spare=2, speed_log_sd_ratio=0.5)]).kept_frac
    assert unsure < sure


def test_tornado_is_sorted_and_keeps_what_moves():
    answer = found([curve("a", 1.0, 1.0)], growth=Range(low=0.0, mid=0.02, high=0.05))
    widths = [bar.high_usd_per_month - bar.low_usd_per_month for bar in answer.tornado]
    assert widths == sorted(widths, reverse=True)
    assert {bar.what for bar in answer.tornado} == {"demand", "growth", "prices"}


def test_prices_that_are_owned_do_not_move():
    owned = curve("a", 1.0, 1.0, is_committed=True)
    moves = {p.name: p.usd_per_month for p in found([owned]).prices}
    assert len(set(moves.values())) == 1


def test_mean_growth_is_the_mean():
    assert float(mean_growth(0.0, 36)) == 1.0
    assert float(mean_growth(0.1, 2)) == pytest.approx((1 + 1.1) / 2)
    assert np.asarray(mean_growth(np.array([0.0, 0.1]), 2)).shape == (2,)


def compared(curves, *, peak=10.0, base=None):
    load = demand(peak)
    usd = base or cost_usd_per_month(curves[0], load)
    scale = usd / cost_usd_per_month(curves[0], load)
    return ComparedFleets(
        demand=load,
        curves=curves,
        names=[c.kind for c in curves],
        base_usd_per_month=usd,
        billed=billed(curves[0], load, usd),
        levels_usd=[cost_usd_per_month(c, load) * scale for c in curves],
    )


def drawn(curves, n=200):
    kinds = [each.kind for each in curves]
    return draw_samples(n, 0, exactly(0.0), n_months=36, kinds=kinds)


def test_two_workloads_cost_their_sum_and_must_both_meet_their_slos():
    first, second = [curve("a", 1.0, 1.0, n_spare=1)], [curve("b", 1.0, 2.0, n_spare=2)]
    samples = drawn([*first, *second])
    alone = [uncertainty_of(compared(each), samples, seed=0) for each in (first, second)]
    total = sum(found.cost_usd_per_month.value for found in alone)
    parts = [compared(first), compared(second)]
    both = whole_uncertainty(parts, samples, base_usd_per_month=total, seed=0)
    assert both.cost_usd_per_month.value == pytest.approx(total)
    assert both.kept_frac <= min(found.kept_frac for found in alone)
    # One input that moves for all moves each by as much as alone.
    for what in ("demand", "prices"):
        bars = [next(b for b in found.tornado if b.what == what) for found in (*alone, both)]
        assert bars[2].high_usd_per_month == pytest.approx(
            bars[0].high_usd_per_month + bars[1].high_usd_per_month
        )
    stay = next(row for row in both.prices if row.name == "prices stay")
    assert stay.usd_per_month == pytest.approx(total)


def test_nodes_that_are_shared_bring_the_sum_down_to_the_bill():
    parts = [compared([curve("a", 1.0, 1.0)]), compared([curve("b", 1.0, 2.0)])]
    samples = drawn([part.curves[0] for part in parts])
    whole, half = (
        whole_uncertainty(parts, samples, base_usd_per_month=usd, seed=0)
        for usd in (30 * 730.0, 15 * 730.0)
    )
    assert half.cost_usd_per_month.high == pytest.approx(whole.cost_usd_per_month.high / 2)
    assert half.kept_frac == whole.kept_frac


def test_prices_move_what_is_rented_and_leave_the_base():
    fleet = curve("a", 1.0, 2.0, n_base_nodes=4, base_usd_per_node_h=1.0)
    rows = {row.name: row.usd_per_month for row in found([fleet]).prices}
    assert rows["prices stay"] == pytest.approx(730 * (4 * 1.0 + 6 * 2.0))
    assert rows["all fall by 40 %"] == pytest.approx(730 * (4 * 1.0 + 6 * 1.2))
    assert rows["all rise by 20 %"] == pytest.approx(730 * (4 * 1.0 + 6 * 2.4))


def test_a_kind_that_rises_alone_may_lose_its_place():
    near = [curve("a", 1.0, 1.0), curve("b", 1.0, 1.1)]
    rows = {row.name: row for row in found(near).prices}
    assert rows["prices stay"].best_fleet == "a"
    alone = rows["a alone rises by 20 %"]
    assert alone.best_fleet == "b"
    assert alone.best_usd_per_month == pytest.approx(11 * 730)


def test_runs_beside_add_their_own_range_and_move_with_nothing_else():
    alone = found([curve("a", 1.0, 1.0)])
    runs = Estimate(value=100.0, low=80.0, high=150.0, tier="estimated")
    both = with_runs_beside(alone, runs)
    cost, before = both.cost_usd_per_month, alone.cost_usd_per_month
    assert cost.value == pytest.approx(before.value + 100)
    assert (cost.low, cost.high) == pytest.approx((before.low + 80, before.high + 150))
    for bar, known in zip(both.tornado, alone.tornado, strict=True):
        width = bar.high_usd_per_month - bar.low_usd_per_month
        assert width == pytest.approx(known.high_usd_per_month - known.low_usd_per_month)
    stay = next(row for row in both.prices if row.name == "prices stay")
    assert stay.usd_per_month == pytest.approx(cost.value)
    assert both.kept_frac == alone.kept_frac

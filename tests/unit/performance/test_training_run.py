"""Whole runs, and speed-up with a given utilization: reference arithmetic and other numbers."""

import pytest

from fakes.training import fabric
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.performance.training.run import (
    GivenStep,
    checkpoint_bytes,
    fewest_accelerators,
    given_compute_s,
    given_step,
    run_time,
)
from gpuplan.units import DAY, GBIT

N_8B = 8.03e9
FULL = ParallelLayout(dp=64, sharding="zero3")


def run(peak, mfu, *, n=1024, goodput=0.9, n_params=100e9, n_tokens=2e12):
    return run_time(
        n_params,
        n_tokens,
        peak_flop_per_s=peak,
        mfu_frac=mfu,
        n_accelerators=n,
        goodput_frac=goodput,
    )


@pytest.mark.parametrize(
    ("peak", "mfu", "kilo_hours", "days", "with_stops"),
    [(989e12, 0.40, 843, 34, 38), (459e12, 0.50, 1452, 59, 66), (2250e12, 0.38, 390, 16, 18)],
)
def test_large_run_on_three_accelerators(peak, mfu, kilo_hours, days, with_stops):
    found = run(peak, mfu)
    assert found.flop == pytest.approx(1.2e24)
    assert found.accelerator_h / 1e3 == pytest.approx(kilo_hours, abs=0.6)
    assert found.ideal_days == pytest.approx(days, abs=0.5)
    assert found.wall_s / DAY == pytest.approx(with_stops, abs=0.5)


def test_deadline_sets_the_number():
    needed = fewest_accelerators(run(459e12, 0.5), deadline_s=45 * DAY, goodput_frac=0.9)
    assert needed == pytest.approx(1500, rel=0.01)
    assert run(459e12, 0.5, n=needed).wall_s <= 45 * DAY < run(459e12, 0.5, n=needed - 1).wall_s


def test_checkpoint_holds_weights_and_optimizer():
    assert checkpoint_bytes(100e9) == pytest.approx(1.4e12)


def test_unknown_goodput_leaves_the_wall_clock_unknown():
    assert run(989e12, 0.4, goodput=None).wall_s is None


def compute_s(mfu=0.45, tokens=8192):
    return given_compute_s(N_8B, tokens, flop_per_s=989e12 * mfu, has_full_recompute=True)


def efficiency(gbit_per_node, *, layout=FULL, n_micro_batches=1, mfu=0.45):
    links = fabric(outside_bytes_per_s=gbit_per_node * GBIT / 8)
    given = GivenStep(compute_s=compute_s(mfu), n_params=N_8B, n_micro_batches=n_micro_batches)
    one = given_step(given, ParallelLayout(dp=8, sharding="zero3"), links)
    return one.step_s / given_step(given, layout, links).step_s


def test_compute_of_the_fine_tune():
    assert compute_s() == pytest.approx(1.18, abs=0.005)


def test_one_slow_adapter_wastes_most_of_sixty_four_accelerators():
    links = fabric(outside_bytes_per_s=100 * GBIT / 8)
    given = GivenStep(compute_s=compute_s(), n_params=N_8B, n_micro_batches=1)
    found = given_step(given, FULL, links)
    assert found.traffic_s == pytest.approx(3 * 14.05e9 / (0.9 * 12.5e9), rel=0.005)  # 3.75 s
    assert efficiency(100) == pytest.approx(0.30, abs=0.02)
    assert 8 * efficiency(100) == pytest.approx(2.4, abs=0.15)


def test_faster_adapters_hide_the_traffic():
    assert efficiency(400) >= 0.9
    assert efficiency(3200) >= 0.99


def test_hybrid_sharding_with_accumulation_repairs_the_slow_fabric():
    hybrid = ParallelLayout(dp=64, sharding="zero3", n_shard=8)
    assert efficiency(100, layout=hybrid, n_micro_batches=8) == pytest.approx(0.86, abs=0.01)


def test_better_utilization_makes_slow_links_hurt_more():
    assert efficiency(200, mfu=0.6) < efficiency(200, mfu=0.3)

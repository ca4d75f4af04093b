"""Whole runs, and speed-up with a given utilization: reference arithmetic and other numbers."""

import pytest

from fakes.training import fabric
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.performance.training.run import (
    GivenStep,
    checkpoint_bytes,
    given_compute_s,
    given_step,
)
from gpuplan.units import GBIT

N_8B = 8.03e9
FULL = ParallelLayout(dp=64, sharding="zero3")


def test_checkpoint_holds_weights_and_optimizer():
    assert checkpoint_bytes(100e9) == pytest.approx(1.4e12)


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

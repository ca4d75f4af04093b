"""A tenth more of each resource, and the next $10,000."""

from dataclasses import replace

import pytest

from gpuplan.domain.training.scaling import NodeLinks, ScaleRequest
from gpuplan.studies.training.scaling import scale
from gpuplan.units import GBIT

JOB = ScaleRequest(
    model="Llama-3.1-8B",
    accelerator="H100",
    counts=(8, 64),
    mfu_frac=0.45,
    price_usd_per_h=2.0,
    links=NodeLinks(adapters_bytes_per_s=100 * GBIT),
)
FAST = replace(JOB, links=NodeLinks(adapters_bytes_per_s=3200 * GBIT))


def gains(request):
    return {one.resource: one.step_gain_frac for one in scale(request).gains}


def test_the_network_binds_on_slow_links_and_compute_on_fast_ones():
    assert gains(JOB)["NIC"] == pytest.approx(1 - 1 / 1.1, rel=0.05)
    assert gains(JOB)["FLOPs"] == pytest.approx(0.0, abs=0.01)
    assert gains(FAST)["FLOPs"] == pytest.approx(1 - 1 / 1.1, rel=0.1)
    assert gains(FAST)["NIC"] == pytest.approx(0.0, abs=0.01)


def test_a_slow_loader_binds_everything_else():
    slow = replace(FAST, loader_samples_per_s=2.0)
    curve = scale(slow)
    assert curve.points[-1].step_s == pytest.approx(64 / 2)
    assert dict(curve.points[-1].causes_s)["input"] > 0
    assert gains(slow)["storage"] == pytest.approx(1 - 1 / 1.1, rel=0.01)
    assert gains(slow)["FLOPs"] == pytest.approx(0.0, abs=1e-9)


def test_a_tenth_is_worth_its_share_of_the_bill():
    [nic] = [one for one in scale(JOB).gains if one.resource == "NIC"]
    assert nic.worth_usd_per_month == pytest.approx(nic.step_gain_frac * 64 * 2.0 * 730)


def test_money_goes_where_the_step_is_lost():
    assert scale(JOB).spends[0].what == "NICs"
    cheap = replace(FAST, price_usd_per_h=0.5)
    assert scale(cheap).spends[0].what == "accelerators"
    assert scale(replace(JOB, price_usd_per_h=None)).spends == ()


def test_serial_share_and_ratio_follow_from_the_curve():
    curve = scale(JOB)
    last = curve.points[-1]
    assert curve.serial_frac == pytest.approx((8 / last.speedup_ratio - 1) / 7)
    assert curve.communication_ratio == pytest.approx(last.step_s / last.compute_s - 1)
    assert curve.is_past_knee
    assert not scale(FAST).is_past_knee
    assert scale(replace(JOB, counts=(8,))).serial_frac is None

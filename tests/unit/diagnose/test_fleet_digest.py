"""A large fleet from its digest: bands, causes, waste and teams by hand."""

import numpy as np
import pytest

from gpuplan.diagnose.fleet import diagnose_fleet
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import BandEdges
from gpuplan.domain.telemetry.digest import DeviceDigests, FleetDigest

NAN = float("nan")
# name, team, mean, p95, idle, tensor, watts, held bytes
ROWS = (
    ("held", "a", 0.0, 0.0, 1.0, NAN, 100.0, 20e9),
    ("free", "a", 0.0, 0.0, 1.0, NAN, 100.0, NAN),
    ("spinning", "b", 0.95, 1.0, 0.0, 0.01, 150.0, 20e9),
    ("small kernels", "b", 0.95, 1.0, 0.0, 0.10, 300.0, 20e9),
    ("good", "", 0.80, 0.9, 0.1, 0.40, 600.0, 20e9),
    ("seldom", "", 0.20, 0.5, 0.5, 0.10, 200.0, 20e9),
    ("bursts", "", 0.20, 0.9, 0.5, 0.10, 200.0, 20e9),
)


def digest() -> FleetDigest:
    name, team, mean, p95, idle, tensor, watts, held = zip(*ROWS, strict=True)
    n = len(ROWS)
    percent_s = np.zeros(101)
    percent_s[[0, 50, 80, 90, 91, 96]] = [100.0, 200.0, 300.0, 200.0, 100.0, 100.0]
    devices = DeviceDigests(
        name=name, team=team, model=("H100",) * n, span_s=floats([7200.0] * n),
        mean_frac=floats(mean), p95_frac=floats(p95), peak_frac=floats(p95),
        idle_frac=floats(idle), sm_frac=floats([NAN] * n), tensor_frac=floats(tensor),
        power_w=floats(watts), held_bytes=floats(held),
    )  # fmt: skip
    return FleetDigest(
        source="fleet", devices=devices, percent_s=floats(percent_s), at_s=floats([0.0, 3600.0]),
        hour_mean_frac=floats([0.4, 0.5]), hour_peak_frac=floats([0.5, 0.97]), n_rows=10,
    )  # fmt: skip


def found(usd_per_h: float | None = 2.0):
    return diagnose_fleet(
        digest(), tdp_w=floats([700.0] * len(ROWS)), usd_per_h=usd_per_h, edges=BandEdges(),
        beta_ratio=1.0,
    )  # fmt: skip


def test_bands_by_whole_percents():
    use = found().use
    shares = {band.name: band.time_frac for band in use.bands}
    assert shares == pytest.approx(
        {"waste": 0.1, "under-used": 0.2, "good": 0.5, "hot": 0.1, "overload": 0.1}
    )
    assert use.mean_frac == pytest.approx(0.1 * (5 * 2 + 8 * 3 + 9 * 2 + 9.1 + 9.6) / 10)
    assert (use.peak_frac, use.n_devices, use.span_s) == (0.97, 7, 7200.0)


def test_each_device_under_its_cause():
    causes = {verdict.cause: verdict.subjects for verdict in found().verdicts}
    assert causes == {
        "idle_allocated": ("held",),
        "idle_free": ("free",),
        "busy_in_name": ("spinning",),
        "kernels_or_exchange": ("small kernels",),
        "under_used": ("seldom",),
    }
    assert all(verdict.share_frac == pytest.approx(1 / 7) for verdict in found().verdicts)


def test_unknown_boards_are_not_called_idle_at_work():
    unknown = diagnose_fleet(
        digest(), tdp_w=floats([NAN] * 7), usd_per_h=None, edges=BandEdges(), beta_ratio=1.0
    )
    causes = {verdict.cause: verdict.subjects for verdict in unknown.verdicts}
    assert "busy_in_name" not in causes
    assert causes["kernels_or_exchange"] == ("spinning", "small kernels")


def test_hours_and_dollars_of_waste():
    waste = {one.cause: (one.accelerator_s / 3600.0, one.usd) for one in found().waste}
    assert waste["allocated and idle"] == pytest.approx((2.0, 4.0))
    assert waste["free and idle"] == pytest.approx((2.0, 4.0))
    assert waste["pauses between work"] == pytest.approx((2.2, 4.4))  # 2 h x (0.1 + 0.5 + 0.5)
    assert all(one.usd is None for one in found(None).waste)


def test_teams_and_what_they_could_give_back():
    teams = {one.team: (one.busy_frac, one.usd) for one in found().teams}
    assert teams == {"a": pytest.approx((0.0, 8.0)), "b": pytest.approx((1.0, 8.0))}
    (reclaim,) = found().reclaims
    assert (reclaim.subject, reclaim.team) == ("held", "a")
    assert reclaim.usd_per_month == pytest.approx(1460.0)
    assert (reclaim.begin_s, reclaim.end_s) == (0.0, 7200.0)


def test_precision_is_the_mean_of_what_is_known():
    assert found().quality.precision_frac == pytest.approx(np.mean([row[2] for row in ROWS]))
    assert found().quality.recall_frac is None

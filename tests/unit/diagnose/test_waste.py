"""Idle hours, dollars and joules by cause, team and device, by hand."""

import numpy as np
import pytest

from gpuplan.diagnose.features import device_views
from gpuplan.diagnose.judge import diagnose
from gpuplan.diagnose.waste import reclaims, team_use, waste_of
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import DeviceFacts
from gpuplan.domain.telemetry.observation import Series, Subject, Telemetry

STEP_S, N = 60.0, 61  # an hour
BUSY, IDLE = np.full(N, 0.9), np.zeros(N)
HALF = np.where(np.arange(N) < 30, 0.9, 0.0)
# No kernel ran in a tenth of the busy half, in the whole other half, and in a tenth of device 4.
PAUSES_H = 1.0 - 0.9 * 30 / 61 + 1.0 - 0.9


def fleet(*devices: tuple[Subject, np.ndarray, float, float | None]) -> Telemetry:
    """Devices by subject, utilization, memory held and watts."""
    at_s = floats(STEP_S * np.arange(N))
    made = []
    for row, (_, use, held, watts) in enumerate(devices):
        levels = {"gpu_util_frac": use, "memory_used_bytes": np.full(N, held)}
        if watts is not None:
            levels["power_w"] = np.full(N, watts)
        made += [
            Series(metric=name, subject=row, at_s=at_s, value=floats(value))
            for name, value in levels.items()
        ]
    subjects = tuple(device[0] for device in devices)
    return Telemetry(source="made", format="", subjects=subjects, series=tuple(made))


def views(telemetry: Telemetry, *prices: float | None):
    facts = {row: DeviceFacts(usd_per_h=price) for row, price in enumerate(prices)}
    return device_views(telemetry, facts)


def test_an_idle_hour_costs_its_price_and_its_lowest_power():
    found = fleet((Subject(node="n", device="0"), IDLE, 20e9, 100.0))
    (waste,) = waste_of(views(found, 2.5))
    assert waste.cause == "allocated and idle"
    assert waste.accelerator_s == pytest.approx(3600.0)
    assert waste.usd == pytest.approx(2.5)
    assert waste.energy_j == pytest.approx(360e3)


def test_three_kinds_of_idle_time():
    found = fleet(
        (Subject(device="0"), IDLE, 20e9, 100.0),
        (Subject(device="1"), IDLE, 0.0, 100.0),
        (Subject(device="2", job="j"), IDLE, 0.0, 100.0),
        (Subject(device="3"), HALF, 20e9, 100.0),
        (Subject(device="4"), BUSY, 20e9, 100.0),
    )
    hours = {one.cause: one.accelerator_s / 3600.0 for one in waste_of(views(found))}
    assert hours == pytest.approx(
        {"allocated and idle": 2.0, "free and idle": 1.0, "pauses between work": PAUSES_H}
    )


def test_exactly_a_gigabyte_is_nobodys_program():
    at, above = (
        waste_of(views(fleet((Subject(device="0"), IDLE, held, None))))[0].cause
        for held in (1e9, 1.001e9)
    )
    assert (at, above) == ("free and idle", "allocated and idle")


def test_one_unknown_price_leaves_the_sum_unknown():
    found = fleet((Subject(device="0"), IDLE, 20e9, 100.0), (Subject(device="1"), IDLE, 20e9, None))
    (waste,) = waste_of(views(found, 2.0, None))
    assert (waste.usd, waste.energy_j) == (None, None)
    (priced,) = waste_of(views(found, 2.0, 3.0))
    assert priced.usd == pytest.approx(5.0)


def test_teams_pay_for_what_they_hold_and_the_nameless_are_left_out():
    found = fleet(
        (Subject(device="0", team="b"), IDLE, 20e9, None),
        (Subject(device="1", team="b"), BUSY, 20e9, None),
        (Subject(device="2", team="a"), BUSY, 20e9, None),
        (Subject(device="3"), IDLE, 20e9, None),
    )
    a, b = team_use(found, views(found, 1.0, 2.0, 4.0, 8.0))
    assert (a.team, a.busy_frac, a.idle_s, a.usd) == pytest.approx(("a", 1.0, 0.0, 4.0))
    assert (b.team, b.busy_frac, b.idle_s, b.usd) == pytest.approx(("b", 0.5, 3600.0, 3.0))


def test_the_dearest_device_is_named_first():
    found = fleet(
        (Subject(node="n", device="0"), IDLE, 20e9, None),
        (Subject(node="n", device="1"), IDLE, 30e9, None),
        (Subject(node="n", device="2"), HALF, 30e9, None),
        (Subject(node="n", device="3"), IDLE, 0.0, None),
    )
    dear, cheap = reclaims(found, views(found, 1.0, 3.0, 9.0, 9.0))
    assert (dear.subject, dear.usd_per_month) == ("n gpu 1", pytest.approx(3.0 * 730.0))
    assert (cheap.subject, cheap.memory_held_bytes) == ("n gpu 0", 20e9)
    assert (dear.begin_s, dear.end_s) == (0.0, 3600.0)


def test_a_short_look_reclaims_nothing():
    at_s = floats(np.arange(60) * 10.0)  # 590 s: ten seconds too short
    made = Series(metric="gpu_util_frac", subject=0, at_s=at_s, value=floats(np.zeros(60)))
    found = Telemetry(source="", format="", subjects=(Subject(job="j"),), series=(made,))
    assert reclaims(found, views(found, 1.0)) == ()


def test_four_idle_days_of_seven_are_a_verdict_and_cost_their_share():
    """Half an hour a sample: idle from Monday to Thursday, at work for the rest of the week."""
    at_s = floats(np.arange(7 * 48) * 1800.0)
    use = floats(np.where(np.arange(7 * 48) < 4 * 48, 0.0, 0.8))
    subjects = tuple(Subject(device=str(i), node="n", team="ads", job=f"j{i}") for i in range(4))
    series = tuple(
        Series(
            metric="gpu_util_frac",
            subject=i,
            at_s=at_s,
            value=use if i == 0 else floats(np.full(len(use), 0.8)),
        )
        for i in range(4)
    )
    week = Telemetry(source="", format="", subjects=subjects, series=series)
    facts = {i: DeviceFacts(usd_per_h=2.0) for i in range(4)}
    found = diagnose(week, facts)
    [one] = found.reclaims
    assert one.usd_per_month == pytest.approx(2.0 * 730 * 4 / 7, rel=0.01)
    [verdict] = [v for v in found.verdicts if v.cause == "idle_allocated"]
    assert verdict.subjects == (one.subject,)
    assert verdict.evidence[0].found == "none for 96 h at a stretch"

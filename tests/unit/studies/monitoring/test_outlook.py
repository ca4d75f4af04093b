"""From telemetry to an order: the whole way, on telemetry made up and recorded."""

import numpy as np
import pytest

from gpuplan.domain.telemetry.forecast import ForecastRequest
from gpuplan.errors import InputError
from gpuplan.observe.demand import demand_series
from gpuplan.observe.read import read_telemetry, read_text
from gpuplan.report.telemetry.forecast import forecast_sheet
from gpuplan.studies.monitoring.outlook import outlook
from shared_data import shared_file

WEEK_S = 7 * 86400.0


def hours(values) -> str:
    rows = [f"{1.7e9 + 3600 * k:.0f},0,{v:.5f}" for k, v in enumerate(values)]
    return "timestamp,gpu,allocated_frac\n" + "\n".join(rows) + "\n"


def test_the_way_to_an_order():
    telemetry = read_text(hours([0.70] * 24 * 28), source="made")
    asked = ForecastRequest(n_devices=48, lead_s=16 * WEEK_S, growth_frac_per_month=0.08)
    found = outlook(telemetry, asked)
    middle = found.advice[1]
    assert found.peak_use_frac == pytest.approx(0.70)
    assert middle.trigger_in_s / WEEK_S == pytest.approx(10.9, abs=0.05)
    assert [round(row.growth_frac_per_month, 2) for row in found.advice] == [0.04, 0.08, 0.12]
    sheet = forecast_sheet(found)
    assert sheet.head.startswith("order now: the trigger is reached in 10.9 weeks")
    assert sheet.document["orders"][1]["n_needed_in_a_year"] == 106


def test_growth_from_the_peaks_of_weeks():
    n = 24 * 7 * 10
    shape = 0.3 * np.tile(1 + 0.5 * np.sin(np.arange(24) / 24 * 2 * np.pi), n // 24)
    level = shape * 1.05 ** (np.arange(n) / (24 * 7 * 52 / 12))
    asked = ForecastRequest(n_devices=10, lead_s=4 * WEEK_S)
    found = outlook(read_text(hours(level), source="made"), asked)
    assert found.trend.per_month_frac == pytest.approx(0.05, abs=0.005)


def test_gaps_are_drawn_through_and_counted():
    text = hours([1.0] * 100).splitlines()
    telemetry = read_text("\n".join(text[:50] + text[60:]) + "\n", source="made")
    series = demand_series(telemetry, None, None)
    assert series.n_filled == 10
    assert series.level == pytest.approx(np.ones(100))


def test_parts_add_up_and_shares_do_not():
    text = "timestamp,gpu,gpu_util_frac,requests_per_s\n"
    text += "".join(f"{3600 * k},{g},0.5,3\n" for k in range(50) for g in range(2))
    telemetry = read_text(text, source="made")
    assert demand_series(telemetry, "requests_per_s", 3600.0).level == pytest.approx([6.0] * 50)
    assert demand_series(telemetry, "gpu_util_frac", 3600.0).level == pytest.approx([0.5] * 50)


def test_what_is_not_there_is_told():
    with pytest.raises(InputError, match="choose one of: gpu_util_frac"):
        demand_series(
            read_text("timestamp,gpu,gpu_util_frac\n1,0,1\n", source="x"), "power_w", None
        )


def test_recorded_cluster():
    path = shared_file("traces/helios/Earth_vc3sl.cluster_sequence_vc.csv.gz")
    found = outlook(read_telemetry(path), ForecastRequest(metric="allocated_count"))
    errors = {row.method: row.mase_ratio for row in found.forecast.backtest}
    assert errors["combination"] < errors["as a day ago"]
    assert 0.75 <= found.forecast.range_held_frac <= 0.95


def test_order_advice_that_cannot_be_given_says_what_is_missing() -> None:
    """Nobody waits for a table that never comes: the reason and the flag are named."""
    short = read_text(hours([0.5] * 24 * 4), source="made")
    asked = ForecastRequest(n_devices=4, lead_s=10 * WEEK_S)
    found = outlook(short, asked)
    assert not found.advice
    assert found.no_advice is not None
    assert "--growth" in found.no_advice
    assert outlook(short, ForecastRequest()).no_advice is None

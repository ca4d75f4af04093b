"""Minutes, backlog, targets and work, as documents and as tables."""

from dataclasses import replace

import pytest

from gpuplan.domain.telemetry.figures import (
    Backlog,
    BandsOverTime,
    Episode,
    MinuteUse,
    PoolTail,
    ServiceFigures,
    SloState,
    WorkDone,
)
from gpuplan.report.telemetry.diagnosis import service_body, service_tables, times_body

TIMES = BandsOverTime(
    minutes=(MinuteUse(at_s=0.0, use_frac=0.2, band="waste"),),
    episodes=(Episode(band="waste", begin_s=0.0, end_s=60.0),),
    n_crossings=0,
    suggested_low_frac=0.33,
    suggested_high_frac=0.53,
    tail=PoolTail(n_devices=4, calm_frac=0.8, use_frac=0.97, wait_growth_ratio=9.0),
)
BACKLOG = Backlog(
    n_waiting_requests=597,
    growth_requests_per_s=0.5,
    served_requests_per_s=4.0,
    deficit_frac=0.11,
    n_replicas_more=1,
    replica_requests_per_s=4.0,
    clear_s=171.0,
)
SLO = SloState(limit_s=0.5, attainment_frac=0.71, burn_rate_ratio=29.0, binding_phase="queue")
WORK = WorkDone(output_tokens_per_s=8000.0, input_tokens_per_s=32000.0, j_per_output_token=0.2)
ALL = ServiceFigures(backlog=BACKLOG, slo=SLO, work=replace(WORK, mfu_frac=0.15, mbu_frac=0.3))


def test_minutes_have_keys_of_the_contract():
    body = times_body(TIMES)
    assert body["minutes"] == [{"at_s": 0.0, "band": "waste", "utilization": 0.2}]
    assert body["suggested_band"] == {"low": 0.33, "high": 0.53}
    assert body["tail"]["wait_growth"] == 9.0
    assert times_body(replace(TIMES, tail=None))["tail"] is None


def test_a_fleet_without_minutes_says_so_by_empty_lists():
    assert times_body(None) == {
        "minutes": [],
        "episodes": [],
        "suggested_band": None,
        "tail": None,
    }


def test_service_keys():
    body = service_body(ALL)
    assert body["backlog"]["waiting_requests"] == 597
    assert body["backlog"]["clear_s_with_one_more_replica"] == 171.0
    assert body["slo"]["burn_rate"] == 29.0
    assert body["work"]["j_per_output_token"] == 0.2
    assert service_body(ServiceFigures()) == {"backlog": None, "slo": None, "work": None}


@pytest.mark.parametrize(
    ("service", "n_rows"),
    [
        (ALL, 5 + 3 + 4),
        (ServiceFigures(work=WORK), 2),
        (ServiceFigures(backlog=replace(BACKLOG, clear_s=None, deficit_frac=None)), 3),
        (ServiceFigures(), 0),
    ],
)
def test_rows_are_what_is_known(service, n_rows):
    [table] = service_tables(service)
    assert len(table.rows) == n_rows


def test_values_have_units_in_their_names():
    [table] = service_tables(ALL)
    rows = {str(row[0]): str(row[1]) for row in table.rows}
    assert rows["time to clear with one replica more (min)"] == "3"
    assert rows["SLO attainment (TTFT within 0.5 s)"] == "71.0%"
    assert rows["energy per output token (J)"] == "0.2"

"""Telemetry as nobody should write it: read with a remark or refused with a reason, and soon."""

import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.telemetry.monitoring import ServerAccess
from gpuplan.errors import CatalogError, InputError
from gpuplan.observe.demand import demand_series
from gpuplan.observe.guard import clean, json_document
from gpuplan.observe.read import read_telemetry, read_text
from hardening.spoiled import ESCAPE, FILES, START_S, rows

MOST_S, MOST_BYTES = 10.0, 500e6


@pytest.mark.parametrize("name", FILES)
def test_it_is_read_or_refused(name: str, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    begin_s, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = [_refusal(api.diagnose, path, DiagnoseRequest()), _refusal(_demand, path)]
    assert not any("\x1b" in text or len(text) > 1000 for text in said)
    assert time.process_time() - begin_s < MOST_S
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES


def _refusal(verb: Callable[..., object], *given: object) -> str:
    try:
        verb(*given)
    except (InputError, CatalogError) as error:
        return str(error)
    return ""


def _demand(path: Path) -> None:
    demand_series(read_telemetry(path), None, None)


@pytest.mark.parametrize("at", ["0", "253402300799", "nan", "1e300", "-1e15"])
def test_a_clock_that_was_not_set_changes_nothing_else(at: str):
    sound = read_text(rows().decode(), source="sound")
    hurt = read_text(rows(f"{at},node-0,0,99,900").decode(), source="hurt")
    assert [s.metric for s in hurt.series] == [s.metric for s in sound.series]
    for one, other in zip(sound.series, hurt.series, strict=True):
        assert np.array_equal(one.at_s, other.at_s)
        assert np.array_equal(one.value, other.value)
    assert sum(quirk.n_cases for quirk in hurt.quirks) > sum(q.n_cases for q in sound.quirks)


def test_times_without_a_date_are_kept():
    found = read_text("timestamp,gpu_util\n0,10\n60,20\n", source="undated")
    assert list(found.series[0].at_s) == [0.0, 60.0]


def test_a_forecast_does_not_draw_through_years_without_readings():
    late_s = START_S + 300 * 86400
    extra = [f"{late_s + 60 * i},node-0,0,50,300" for i in range(100)]
    series = demand_series(read_text(rows(*extra).decode(), source="gap"), "gpu_util_frac", None)
    assert len(series.level) == 100
    assert series.n_before_gap == 200


def test_names_from_outside_are_cleaned_where_they_enter():
    text = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="{ESCAPE}n\\nkind: Pod"}} 50 {START_S}\n'
    (subject,) = read_text(text * 2, source="hostile").subjects
    assert subject.node.isprintable()
    assert "\\nkind" in subject.node  # shown, on one line
    assert len(clean("x" * 10_000)) <= 256


def test_json_of_any_depth_and_length_is_an_answer_or_a_value_error():
    assert json_document("[" + "9" * 5000 + "]") == [float("inf")]
    with pytest.raises(ValueError, match="too deep"):
        json_document("[" * 100_000)


def test_a_password_in_an_address_is_shown_nowhere():
    access = ServerAccess(url="http://me:secret@server:9090/prom?x=1")
    assert access.public_url == "http://server:9090/prom?x=1"
    assert "secret" not in repr(access)

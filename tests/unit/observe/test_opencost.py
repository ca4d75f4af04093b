"""OpenCost's allocations: totals or parts, windows that add up, and what is refused."""

import json

import pytest

from gpuplan.errors import InputError
from gpuplan.observe.opencost import read_opencost


def read(folder, data):
    path = folder / "costs.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return read_opencost(path)


def window(day):
    return {"start": f"2026-11-{day:02d}T00:00:00Z", "end": f"2026-11-{day + 1:02d}T00:00:00Z"}


def test_days_of_one_name_add_up(tmp_path):
    days = [
        {"chat": {"name": "chat", "totalCost": 10.0, "gpuHours": 24, "window": window(day)}}
        for day in (1, 2, 3)
    ]
    (found,) = read(tmp_path, {"code": 200, "data": days})
    assert (found.usd, found.accelerator_s) == (30.0, 72.0 * 3600)
    assert found.window_s == 3 * 86400.0


def test_parts_count_where_no_total_is_given(tmp_path):
    (found,) = read(tmp_path, {"data": [{"x": {"gpuCost": 5, "cpuCost": 2, "pvCost": 0.5}}]})
    assert found.usd == 7.5
    assert found.window_s is None


def test_names_come_from_properties_and_labels(tmp_path):
    known = {"namespace": "ml", "labels": {"team": "ads", "model": "llama"}, "controller": "api"}
    (found,) = read(tmp_path, {"data": [{"pod": {"totalCost": 1, "properties": known}}]})
    assert found.names == ("pod", "ml", "api", "ads", "llama")


def test_idle_is_marked(tmp_path):
    (found,) = read(tmp_path, {"data": [{"__idle__": {"totalCost": 4}}]})
    assert found.is_idle


@pytest.mark.parametrize(
    "data",
    [
        "no json",
        {"data": []},
        {"data": None},
        [],
        {"data": [{"x": {"totalCost": "12"}}]},
        {"data": [{"x": {"totalCost": -1}}]},
        {"data": [{"x": {"gpuCost": True}}]},
    ],
)
def test_what_is_no_allocation_is_wrong_input(tmp_path, data):
    with pytest.raises(InputError):
        read(tmp_path, data)

"""Figures of devices and engines: busy time, tails, turns, names; missing stays missing."""

import numpy as np
import pytest
from device_classes import device_class

from gpuplan.diagnose.features import (
    device_views,
    engine_views,
    name_of,
    stat_of,
    window_means,
)
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import DeviceFacts
from gpuplan.domain.telemetry.observation import Series, Subject, Telemetry

FACTS = DeviceFacts(tdp_w=700.0, memory_bytes=80e9)


def telemetry(step_s: float = 10.0, subject: Subject | None = None, **metrics) -> Telemetry:
    """One subject; each metric in equal steps."""
    made = [
        Series(
            metric=name, subject=0, at_s=floats(np.arange(len(value)) * step_s), value=floats(value)
        )
        for name, value in metrics.items()
    ]
    about = subject or Subject(node="n1", device="0")
    return Telemetry(source="made", format="", subjects=(about,), series=tuple(made))


def view(facts: DeviceFacts = FACTS, **metrics):
    (found,) = device_views(telemetry(**metrics), {0: facts})
    return found


def test_busy_time_is_above_five_percent():
    found = view(gpu_util_frac=[0.05, 0.06, 0.5, 0.0], power_w=[100.0, 200.0, 400.0, 100.0])
    assert found.busy_frac == pytest.approx(0.5)
    assert found.span_s == 30.0
    assert found.get("power_w") == pytest.approx(300.0)
    assert found.whole["power_w"].mean == pytest.approx(200.0)
    assert found.power_frac == pytest.approx(300.0 / 700.0)


def test_processors_tell_where_utilization_is_not_given():
    assert view(sm_active_frac=[0.02, 0.021, 0.5, 0.0]).busy_frac == pytest.approx(0.5)
    assert view(power_w=[300.0, 300.0]).busy_frac == 0.0


def test_missing_samples_are_no_idle_time():
    assert view(gpu_util_frac=[0.9, np.nan, np.nan, 0.9]).busy_frac == pytest.approx(1.0)


def test_what_is_not_measured_is_none():
    found = view(gpu_util_frac=[0.9, 0.9], tensor_active_frac=[np.nan, np.nan])
    assert found.get("tensor_active_frac") is None
    assert found.power_frac is None
    assert found.link_bytes_per_s is None
    assert found.memory_frac is None


def test_the_busier_direction_of_the_links_counts():
    found = view(
        gpu_util_frac=[0.9, 0.9], link_tx_bytes_per_s=[1e9, 3e9], link_rx_bytes_per_s=[5e9, 5e9]
    )
    assert found.link_bytes_per_s == pytest.approx(5e9)


def test_memory_by_total_then_by_used_and_free_then_by_the_catalog():
    util, used = [0.9, 0.9], [20e9, 40e9]
    by_total = view(gpu_util_frac=util, memory_used_bytes=used, memory_total_bytes=[50e9, 50e9])
    assert by_total.memory_frac == pytest.approx(0.8)
    by_free = view(gpu_util_frac=util, memory_used_bytes=[40e9] * 2, memory_free_bytes=[60e9] * 2)
    assert by_free.memory_frac == pytest.approx(0.4)
    assert view(gpu_util_frac=util, memory_used_bytes=used).memory_frac == pytest.approx(0.5)


def test_samples_at_other_instants_are_matched_to_the_last_known_state():
    at = floats([0.0, 10.0])
    late = floats([5.0, 15.0])
    made = (
        Series(metric="gpu_util_frac", subject=0, at_s=at, value=floats([0.0, 0.9])),
        Series(metric="power_w", subject=0, at_s=late, value=floats([100.0, 600.0])),
    )
    whole = Telemetry(source="", format="", subjects=(Subject(device="0"),), series=made)
    (found,) = device_views(whole, {})
    assert found.get("power_w") == pytest.approx(600.0)


def test_turns_count_how_often_the_middle_is_crossed():
    def one(value):
        return stat_of(telemetry(gpu_util_frac=value).series[0])

    assert one([0.1, 0.9, 0.1, 0.9]).n_turns == 3
    assert one([0.1, 0.1, 0.9, 0.9]).n_turns == 1
    assert one([0.5, 0.5, 0.5]).n_turns == 0
    assert one([np.nan, np.nan]) is None


def test_windows_start_with_the_first_sample_and_skip_holes():
    (made,) = telemetry(requests_waiting_count=[1.0, 3.0, 5.0, np.nan, np.nan, np.nan, 7.0]).series
    start_s, mean = window_means(made, 30.0)
    assert start_s.tolist() == [0.0, 60.0]
    assert mean.tolist() == [3.0, 7.0]


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (Subject(node="n1", device="3"), "n1 gpu 3"),
        (Subject(node="n1", device="3", share="1g.5gb 7"), "n1 gpu 3 1g.5gb 7"),
        (Subject(job="pod-1", service="chat"), "pod-1"),
        (Subject(service="chat", uuid="GPU-1"), "chat"),
        (Subject(uuid="GPU-1"), "GPU-1"),
        (Subject(), "subject 4"),
    ],
)
def test_names_that_people_would_use(subject, name):
    assert name_of(subject, 4) == name


def test_hosts_and_engines_are_no_devices():
    host = telemetry(cpu_util_frac=[0.5, 0.5])
    assert device_views(host, {}) == ()
    assert engine_views(host) == ()
    (engine,) = engine_views(telemetry(requests_running_count=[1.0, 3.0]))
    assert engine.mean("requests_running_count") == pytest.approx(2.0)
    assert engine.mean("kv_cache_frac") is None


@pytest.mark.parametrize(
    ("metrics", "kind"),
    [
        ({"gpu_util_frac": 0.0}, "idle"),
        ({"gpu_util_frac": 0.9, "tensor_active_frac": 0.35}, "compute"),
        ({"gpu_util_frac": 0.9, "tensor_active_frac": 0.34}, "mixed"),
        (
            {"gpu_util_frac": 0.9, "tensor_active_frac": 0.1, "link_tx_bytes_per_s": 25e9},
            "communication",
        ),
        ({"gpu_util_frac": 0.9, "tensor_active_frac": 0.1, "dram_active_frac": 0.6}, "memory"),
        ({"gpu_util_frac": 0.9, "power_w": 630.0}, "compute"),
        ({"gpu_util_frac": 0.9, "power_w": 174.0}, "idle"),
        ({"gpu_util_frac": 0.9, "power_w": 400.0}, "mixed"),
        ({"gpu_util_frac": 0.9}, "unknown"),
    ],
)
def test_kinds_of_work_at_their_edges(metrics, kind):
    assert device_class(view(**{name: [value] * 3 for name, value in metrics.items()})) == kind

"""Phases of one node, second by second."""

import numpy as np
import pytest

from gpuplan.diagnose.phases import PhaseRule, node_phases
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.observation import Series, Subject, Telemetry

N = 120
AT = np.arange(N)


def seconds(step_s: float = 1.0, begin_s: float = 0.0, node: str = "n1", **metrics) -> Telemetry:
    made = tuple(
        Series(
            metric=name,
            subject=0,
            at_s=floats(begin_s + step_s * np.arange(len(value))),
            value=floats(value),
        )
        for name, value in metrics.items()
    )
    return Telemetry(source="", format="", subjects=(Subject(node=node),), series=made)


def between(begin: int, end: int, level: float) -> np.ndarray:
    return np.where((begin <= AT) & (end > AT), level, 0.0)


def phases(telemetry: Telemetry) -> list[tuple[str, float, float]]:
    """Phases with their ends, neighbours of other states put together."""
    found: list[tuple[str, float, float]] = []
    for span in node_phases(telemetry):
        if found and found[-1][0] == span.phase:
            found[-1] = (span.phase, found[-1][1], span.end_s)
        else:
            found.append((span.phase, span.begin_s, span.end_s))
    return found


MODEL = np.where(AT < 5, 0.0, 40e9)


def test_serving_loads_warms_up_works_and_cools_down():
    found = phases(seconds(sm_active_frac=between(20, 100, 0.8), memory_used_bytes=MODEL))
    assert found == [
        ("init", 0.0, 1.0),
        ("loading", 1.0, 20.0),
        ("warmup", 20.0, 50.0),
        ("steady", 50.0, 100.0),
        ("cooldown", 100.0, 119.0),
    ]


def test_training_that_takes_memory_as_it_steps_warms_up_from_the_start():
    growing = np.where(AT < 20, 1e9, 40e9)
    found = phases(seconds(sm_active_frac=between(20, 100, 0.8), memory_used_bytes=growing))
    assert found[:3] == [("init", 0.0, 1.0), ("warmup", 1.0, 50.0), ("steady", 50.0, 100.0)]


def test_a_test_kernel_is_no_beginning():
    use = between(10, 12, 0.9) + between(40, 110, 0.9)
    found = phases(seconds(gpu_util_frac=use, memory_used_bytes=MODEL))
    assert ("loading", 1.0, 40.0) in found


def test_a_model_that_is_never_used_is_loaded_and_steady():
    found = phases(seconds(gpu_util_frac=np.zeros(N), memory_used_bytes=MODEL))
    assert [phase for phase, *_ in found] == ["init", "loading", "warmup", "steady"]
    assert found[1] == ("loading", 1.0, 5.0)


def test_nothing_at_all_is_idle():
    assert phases(seconds(gpu_util_frac=np.zeros(N))) == [("idle", 0.0, 119.0)]


@pytest.mark.parametrize(
    ("metric", "below", "above"), [("sm_active_frac", 0.10, 0.11), ("gpu_util_frac", 0.20, 0.21)]
)
def test_busy_begins_above_its_edge(metric, below, above):
    states = [
        {span.state for span in node_phases(seconds(**{metric: np.full(N, level)}))}
        for level in (below, above)
    ]
    assert states == [{"idle"}, {"busy"}]


def test_memory_that_grows_while_idle_is_loading():
    found = node_phases(
        seconds(gpu_util_frac=between(60, 120, 0.9), memory_used_bytes=np.minimum(AT * 1e9, 30e9))
    )
    loading = [(span.begin_s, span.end_s) for span in found if span.state == "loading"]
    assert (loading[0][0], loading[-1][1]) == (1.0, 31.0)


def test_traffic_and_power_speak_where_devices_are_silent():
    by_traffic = node_phases(seconds(fabric_tx_bytes_per_s=between(20, 100, 50e9)))
    by_power = node_phases(seconds(node_power_w=2000.0 + between(20, 100, 6000.0)))
    for found in (by_traffic, by_power):
        (busy,) = {(s.begin_s, s.end_s) for s in found if s.phase == "steady"}
        assert busy == (50.0, 100.0)


def test_even_power_and_a_trickle_of_traffic_show_nothing():
    assert phases(seconds(node_power_w=np.full(N, 2000.0)))[0][0] == "idle"
    assert phases(seconds(fabric_tx_bytes_per_s=np.full(N, 1e5)))[0][0] == "idle"


@pytest.mark.parametrize("begin_s", [0.0, 1.7e9])
def test_the_date_does_not_matter(begin_s):
    found = phases(
        seconds(begin_s=begin_s, sm_active_frac=between(20, 100, 0.8), memory_used_bytes=MODEL)
    )
    assert [round(start - begin_s) for _, start, _ in found] == [0, 1, 20, 50, 100]


def test_the_length_of_a_warm_up_is_a_rule():
    made = seconds(sm_active_frac=between(20, 100, 0.8), memory_used_bytes=MODEL)
    found = node_phases(made, PhaseRule(warmup_s=10.0))
    assert next(span.begin_s for span in found if span.phase == "steady") == 30.0


def test_two_samples_are_too_few():
    assert node_phases(seconds(gpu_util_frac=[0.9, 0.9])) == ()

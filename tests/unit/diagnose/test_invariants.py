"""What must not change a diagnosis: the order of rows, the date, the unit of a share."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.diagnose.judge import diagnose
from gpuplan.domain.telemetry.diagnosis import Diagnosis
from gpuplan.domain.telemetry.observation import METRICS
from gpuplan.observe.read import read_text

percents = st.lists(st.integers(0, 100), min_size=6, max_size=40)


def diagnosed(text: str) -> Diagnosis:
    return diagnose(read_text(text, source="made"), {})


def table(use, *, column: str = "gpu_util", scale: float = 1.0, begin_s: float = 0.0) -> list[str]:
    return [f"timestamp,gpu,{column}"] + [
        f"{begin_s + 30.0 * k},0,{value * scale!r}" for k, value in enumerate(use)
    ]


def causes(found: Diagnosis) -> list[str]:
    return [verdict.cause for verdict in found.verdicts]


def numbers(found: Diagnosis) -> list[float]:
    """Mean, peak, idle time and the time in each band."""
    idle_s = sum(one.accelerator_s for one in found.waste)
    return [
        found.use.mean_frac,
        found.use.peak_frac,
        idle_s,
        *(b.time_frac for b in found.use.bands),
    ]


def same(first: Diagnosis, second: Diagnosis) -> bool:
    return causes(first) == causes(second) and numbers(first) == pytest.approx(numbers(second))


@settings(max_examples=30, deadline=None)
@given(percents, st.randoms(use_true_random=False))
def test_the_order_of_rows(use, random):
    head, *rows = table(use)
    mixed = random.sample(rows, len(rows))
    assert same(diagnosed("\n".join([head, *rows])), diagnosed("\n".join([head, *mixed])))


@settings(max_examples=30, deadline=None)
@given(percents, st.sampled_from([30.0, 86400.0, 1.7e9]))
def test_the_date(use, begin_s):
    assert same(diagnosed("\n".join(table(use))), diagnosed("\n".join(table(use, begin_s=begin_s))))


@settings(max_examples=30, deadline=None)
@given(percents)
def test_percent_or_ratio(use):
    ratio = table(use, column="gpu_util_frac", scale=0.01)
    assert same(diagnosed("\n".join(table(use))), diagnosed("\n".join(ratio)))


@settings(max_examples=20, deadline=None)
@given(percents)
def test_a_second_device_that_does_the_same_changes_no_share(use):
    head, *rows = table(use)
    twice = [head, *rows, *(row.replace(",0,", ",1,", 1) for row in rows)]
    one, two = diagnosed("\n".join([head, *rows])), diagnosed("\n".join(twice))
    assert two.use.mean_frac == pytest.approx(one.use.mean_frac)
    assert [b.time_frac for b in two.use.bands] == pytest.approx(
        [b.time_frac for b in one.use.bands]
    )
    assert sum(w.accelerator_s for w in two.waste) == pytest.approx(
        2 * sum(w.accelerator_s for w in one.waste)
    )


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_a_metric_without_any_value_says_nothing(metric):
    rows = [
        {"timestamp": 30.0 * k, "gpu": gpu, "node": node, "gpu_util_frac": 0.85}
        | {"sm_active_frac": 0.8}
        | {metric: None}
        for k in range(30)
        for node in ("a", "b", "c")
        for gpu in ("0", "1")
    ]
    plain = [{key: cell for key, cell in row.items() if key != metric} for row in rows]
    with_hole, without = diagnosed(json.dumps(rows)), diagnosed(json.dumps(plain))
    assert same(with_hole, without)


@pytest.mark.parametrize("metric", ["requests_waiting_count", "requests_running_count"])
def test_an_engine_with_a_silent_counter_is_still_judged(metric):
    other = ({"requests_waiting_count", "requests_running_count"} - {metric}).pop()
    rows = [
        {"timestamp": 30.0 * k, "service": "chat", metric: None, other: 5.0, "kv_cache_frac": 0.5}
        for k in range(20)
    ]
    found = diagnosed(json.dumps(rows))
    expected = ["overload"] if other == "requests_waiting_count" else ["healthy"]
    assert causes(found) == expected
    assert found.quality.recall_frac is None

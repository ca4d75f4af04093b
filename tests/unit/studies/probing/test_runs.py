"""Points of load of a run, and the words of its commands."""

from types import SimpleNamespace

import pytest

from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.studies.probing.runs import (
    LEAST_POINT_S,
    LEAST_TURNS,
    calibrate_command,
    concurrency_of,
)


@pytest.mark.parametrize(
    ("n_planned", "n_most", "n_points", "users"),
    [
        (17.2, 256, 1, (17,)),
        (17.2, 256, 3, (1, 17, 34)),
        (200.0, 256, 3, (1, 200, 256)),  # no more than the engine runs at once
        (300.0, 256, 1, (256,)),
        (0.2, 256, 3, (1, 2)),  # nobody waits: one alone is as planned
    ],
)
def test_points_spread_over_load(n_planned, n_most, n_points, users):
    assert concurrency_of(n_planned, n_most, n_points=n_points) == users


def candidate(**changes):
    found = {
        "engine": EngineChoice(name="sglang", version="0.5"), "accelerator": "mi300x",
        "precision": "fp8", "cache_precision": "fp8", "n_accelerators": 8,
        "layout": ServingLayout(tp=4, pp=2),
    }  # fmt: skip
    return SimpleNamespace(**(found | changes))


TASK = SimpleNamespace(model=SimpleNamespace(name="org/model"))


def test_what_benchmark_files_do_not_say_stands_in_flags():
    text = calibrate_command(TASK, candidate())
    assert "--model org/model --on 8xmi300x --tp 4 --precision fp8 --pp 2" in text
    assert "--kv-precision fp8 --engine sglang --engine-version 0.5 --out site.json" in text


def test_one_stage_and_no_cache_ask_for_no_flags():
    text = calibrate_command(TASK, candidate(layout=ServingLayout(tp=8), cache_precision=""))
    assert "--pp" not in text
    assert "--kv-precision" not in text


def test_points_are_long_enough_to_settle():
    assert LEAST_POINT_S >= 60
    assert LEAST_TURNS >= 2

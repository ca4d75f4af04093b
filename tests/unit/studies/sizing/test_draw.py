"""Draw of a replica over its load: from idle to the peak, never falling, as predictions say."""

from pathlib import Path

import numpy as np
import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.provenance import Estimate
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.power.serving import idle_w
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.draw import LOADS, power_by_load, rising
from gpuplan.studies.sizing.task import SizingContext, task_of

CHAT = read_scenario(Path(__file__).parents[4] / "examples" / "chat.yaml")
CATALOG = read_catalog()


@pytest.fixture(scope="module")
def prepared():
    [workload] = CHAT.workloads
    task = task_of(workload, CHAT, SizingContext(catalog=CATALOG))
    candidate = next(c for c in candidates_of(task)[0].accepted if c.accelerator == "h100-sxm")
    return task.evaluator.prepared(candidate)


def watts(value: float) -> Estimate:
    return Estimate(value=value, low=0.9 * value, high=1.1 * value, tier="fitted")


def test_a_replica_without_load_draws_its_idle_boards(prepared):
    curve = power_by_load(prepared, 1.0, watts(900.0))
    n = prepared.setup.layout.n_accelerators
    assert curve.load_frac == (0.0, *LOADS, 1.0)
    assert curve.watts[0] == pytest.approx(n * idle_w(prepared.setup.accelerator))


@pytest.mark.parametrize("per_s", [0.01, 0.5, 2.0])
def test_more_load_never_draws_less(prepared, per_s):
    curve = power_by_load(prepared, per_s, watts(1400.0))
    assert np.all(np.diff(curve.watts) >= 0)
    assert curve.watts[-1] >= 1400.0


def test_a_busier_replica_draws_more_at_the_same_share(prepared):
    light, heavy = (power_by_load(prepared, x, watts(1400.0)) for x in (0.05, 1.5))
    assert light.at(np.array([0.5])) < heavy.at(np.array([0.5]))


def test_without_a_published_limit_there_is_no_curve(prepared):
    assert power_by_load(prepared, 1.0, None) is None


def test_points_that_fall_are_lifted():
    assert rising(watts(200.0), [(0.0, 100.0), (0.5, 90.0), (1.0, 200.0)]).watts == (
        100.0,
        100.0,
        200.0,
    )


def test_a_nearly_empty_replica_is_nearly_idle(prepared):
    curve = power_by_load(prepared, 1e-4, watts(1400.0))
    assert curve.watts[1] < 1.02 * curve.watts[0]

"""Plans that are enough when inputs vary: counted over samples, priced, and chosen on request."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.studies.planning.test_rules import DAY, scenario, service

from gpuplan.domain.columns import floats
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError
from gpuplan.pipeline.plan import plan
from gpuplan.studies.uncertainty.robust import step_for


@given(
    asked=st.lists(st.floats(0.1, 50.0), min_size=1, max_size=60),
    now=st.integers(1, 20),
    level=st.floats(0.01, 1.0),
)
def test_the_step_is_enough_and_one_fewer_is_not(asked, now, level):
    step = step_for(floats(asked), now, level)
    needed = np.ceil(np.array(asked) - 1e-9)
    assert step.enough_frac == np.mean(needed <= step.n_replicas)
    assert step.enough_frac >= level - 1e-9
    assert step.n_replicas == now or np.mean(needed <= step.n_replicas - 1) < level


@pytest.fixture
def planned(tmp_path: Path):
    def run(tree: dict, **rest):
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(tree))
        return plan(PlanRequest(target=str(path), today=DAY, **rest))

    return run


def robust(answer):
    return {a.kind: a for a in answer.alternatives if a.kind.startswith("robust")}


def test_a_plan_on_its_limit_says_what_more_certainty_costs(planned):
    tree = scenario(service(rate=150))
    answer = planned(tree)
    steps = robust(answer)
    assert answer.uncertainty.kept_frac < 0.8
    assert set(steps) == {"robust 80%", "robust 90%"}
    assert 0 < steps["robust 80%"].extra_usd_per_month < steps["robust 90%"].extra_usd_per_month


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_the_flag_buys_what_the_alternative_says(planned, level):
    tree = scenario(service(rate=150))
    plain = planned(tree)
    offered = robust(plain)[f"robust {level:.0%}"]
    answer = planned(tree, robust_frac=level)
    assert answer.plan.cost_usd_per_month.value == pytest.approx(offered.usd_per_month)
    assert answer.uncertainty.kept_frac >= level
    [pool], [before] = answer.plan.pools, plain.plan.pools
    assert before.n_spare_replicas == 0
    # Promises ask for no more than before: what is added is headroom.
    assert pool.n_replicas - pool.n_spare_replicas == before.n_replicas


def test_spares_for_failures_serve_surprises_too(planned):
    plain = scenario(service(rate=150), policy={"survive": "node"})
    without, with_spares = (
        planned(scenario(service(rate=150), policy=policy), robust_frac=0.9).plan.pools[0]
        for policy in ({}, {"survive": "node"})
    )
    assert planned(plain).plan.pools[0].n_spare_replicas >= 1
    assert with_spares.n_replicas == without.n_replicas


def test_without_samples_there_is_nothing_to_judge_by(planned):
    with pytest.raises(InputError, match="--robust"):
        planned(scenario(service()), robust_frac=0.9, n_samples=0)

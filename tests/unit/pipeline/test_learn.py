"""Lessons are drawn from a plan that stands, or from telemetry."""

import pytest

from gpuplan import api
from gpuplan.domain.telemetry.diagnosis import Diagnosis
from gpuplan.errors import InputError
from gpuplan.pipeline.diagnose import learn
from shared_data import ROOT

FIVE = ["match", "choose", "balance", "scale", "sustain"]


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    answer = api.plan(ROOT / "examples" / "cpu-is-enough.yaml")
    path = tmp_path_factory.mktemp("plans") / "plan.yaml"
    path.write_text(api.plan_text(answer), encoding="utf-8")
    return path


def test_a_plan_has_five_takeaways_with_its_own_figures(plan_file):
    document = api.learn_sheet(learn(plan_file)).document
    here = {one["takeaway"]: one["here"] for one in document["takeaways"]}
    assert list(here) == FIVE
    assert "$292 a month" in here["sustain"]
    assert any("priciest" in one["question"] for one in document["questions"])


def test_a_table_is_telemetry(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("Time (min) | GPU Utilization (%)\n0 | 20\n1 | 95\n", encoding="utf-8")
    found = learn(path)
    assert isinstance(found, Diagnosis)
    assert api.learn_sheet(found).document["takeaways"] == []


def test_a_scenario_is_no_plan():
    with pytest.raises(InputError, match="no plan"):
        learn(ROOT / "examples" / "chat.yaml")

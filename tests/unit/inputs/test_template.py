"""Templates are valid as written, and their commented keys too."""

import re

import pytest

from fakes.scenarios import read_scenario_text
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.template import TEMPLATE_KINDS, scenario_template


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_a_template_is_valid_as_written(kind: str) -> None:
    scenario = read_scenario_text(scenario_template(kind), name=kind)
    assert scenario.workloads


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_what_is_commented_out_is_valid_too(kind: str) -> None:
    text = scenario_template(kind)
    woken = re.sub(r"(?m)^(\s*)# (\s*(?:- \{|\w+:(?:\s|$)))", r"\1\2", text)
    assert woken != text
    assert read_scenario_text(woken, name=kind).workloads


def test_the_default_is_chat() -> None:
    assert scenario_template() == scenario_template("chat")


def test_mixed_has_both_kinds() -> None:
    kinds = {w.kind for w in read_scenario_text(scenario_template("mixed")).workloads}
    assert kinds == {"online_inference", "finetuning"}


def test_an_unknown_kind_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean chat"):
        scenario_template("chatt")
    with pytest.raises(InputError, match="choose chat, "):
        scenario_template("quux")

"""plan.yaml is read back as it was written, and refused where it is not ours."""

import pytest

from fakes.plans import answer
from gpuplan.errors import InputError
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of, read_plan
from gpuplan.report.plan.document import plan_text


def test_written_and_read_back_is_the_same(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer()))
    assert read_plan(path) == answer()


def test_same_answer_same_bytes():
    assert plan_text(answer()) == plan_text(answer())


def test_a_changed_count_changes_few_lines():
    old, new = plan_text(answer(6)).splitlines(), plan_text(answer(8)).splitlines()
    assert len(old) == len(new)
    assert 0 < sum(a != b for a, b in zip(old, new, strict=True)) < 20


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("is_chosen: true", "is_chosen: 12", "boolean"),
        ("kind: gpuplan-plan", "kind: recipe", "is no plan"),
        ("schema_version: '1.0'", "schema_version: '9.0'", "format"),
        ("    tp: 2", "    tp: two", "integer"),
        ("    tp: 2", "    tp: 2\n    colour: red", "is no key"),
    ],
)
def test_what_is_not_ours_is_refused_with_its_place(old, new, said):
    text = plan_text(answer())
    assert old in text
    with pytest.raises(InputError, match=said):
        plan_of(read_yaml_text(text.replace(old, new, 1), name="plan.yaml"))


def test_every_wrong_value_is_told_at_once():
    text = plan_text(answer())
    text = text.replace("    tp: 2", "    tp: two", 1).replace("    pp: 1", "    pp: x", 1)
    with pytest.raises(InputError) as caught:
        plan_of(read_yaml_text(text, name="plan.yaml"))
    assert len(caught.value.problems) == 2
    assert "plan.yaml:" in caught.value.problems[0].where


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("n_accelerators: 6", "n_accelerators: -6", "no count can be"),
        ("n_replicas: ", "n_replicas: -", "no count can be"),
        ("as_of: '", "as_of: 'cpu ", "no day"),
    ],
)
def test_counts_below_zero_and_days_that_are_none_are_not_believed(old, new, said):
    text = plan_text(answer())
    assert old in text
    with pytest.raises(InputError, match=said):
        plan_of(read_yaml_text(text.replace(old, new, 1), name="plan.yaml"))


def test_a_value_outside_its_own_range_is_not_believed():
    document = read_yaml_text(plan_text(answer()), name="plan.yaml")
    cost = document.data["plan"]["cost_usd_per_month"]
    cost["value"] = 2.0 * cost["high"]
    with pytest.raises(InputError, match="outside its own range"):
        plan_of(document)


def test_a_week_without_all_of_its_hours_is_not_believed():
    document = read_yaml_text(plan_text(answer()), name="plan.yaml")
    row = {"workload": "chat", "accelerator": "h100-sxm", "kind": "service"}
    for n_hours in (168, 101):
        rows = [{**row, "accelerators": [6] * n_hours}]
        document.data["calendar"] = {"hours": [], "rows": rows, "remark": ""}
        if n_hours == 168:
            plan_of(document)
    with pytest.raises(InputError, match="101 hours, not the 168"):
        plan_of(document)


def test_what_a_terminal_obeys_is_written_as_text():
    text = plan_text(answer())
    hostile = text.replace("precision: fp8", 'precision: "\\e[31mfp8"', 1)
    assert hostile != text
    assert "\x1b" not in plan_text(plan_of(read_yaml_text(hostile, name="plan.yaml")))

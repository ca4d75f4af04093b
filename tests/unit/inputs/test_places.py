"""Where an error is reported: the line of the file as written, or the option that set the key."""

from datetime import date
from pathlib import Path

import pytest

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError
from gpuplan.inputs.documents.document import Document, document_from_dict
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.scenario.read import read_scenario, scenario_document
from gpuplan.pipeline.check import check
from gpuplan.studies.planning.inputs import requested_scenario

TEXT = """\
# A scenario with comments, so that its lines are not those of a dump.

name: chat        # line 3

workloads:
  # the only one
  - name: chat
    kind: online_inference
    model: meta-llama/Llama-3.3-70B-Instruct
    demand: {users: 6000}

    request:
      # lengths
      input_tokens: 2200
      output_tokens: 350
    slo:
      ttft_p95_ms: 2000   # line 17
    capacity:
      - accelerator: H100
        output_tokens_per_s: 9000
      - accelerator: L40S
        output_tokens_per_s: 2600

owned:
  - {accelerator: H100, nodes: 1, accelerators_per_node: 8}
policy:

  survive: node   # line 28
"""
TYPOS = [
    ("name: chat", "nmae: chat", 3, "nmae"),
    ("kind: online_inference", "kind: online", 8, "workloads[0].kind"),
    ("users: 6000", "user: 6000", 10, "workloads[0].demand.user"),
    ("input_tokens: 2200", "input_tokens: many", 14, "workloads[0].request.input_tokens"),
    ("ttft_p95_ms: 2000", "ttft_p95_ms: -1", 17, "workloads[0].slo.ttft_p95_ms"),
    ("_s: 2600", "_s: x", 22, "workloads[0].capacity[1].output_tokens_per_s"),
    ("nodes: 1,", "nodes: 1.5,", 25, "owned[0].nodes"),
    ("survive: node", "survive: nods", 28, "policy.survive"),
    ("ttft_p95_ms: 2000", "availability_frac: 0.9", 16, "workloads[0].slo"),  # across keys
]


def plan(path: Path, *changes: str, **given: object) -> object:
    request = PlanRequest(target=str(path), today=date(2026, 1, 1), changes=changes, given=given)
    return requested_scenario(request)


def places(read: object, *args: object, **options: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(*args, **options)  # type: ignore[operator]
    return [problem.where for problem in caught.value.problems]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(("right", "wrong", "line", "key"), TYPOS)
@pytest.mark.parametrize("read", [plan, check, read_scenario])
def test_a_typo_is_reported_at_its_own_line(
    read: object, right: str, wrong: str, line: int, key: str, file: Path
) -> None:
    assert right in TEXT.splitlines()[line - 1] or key.endswith("slo")
    file.write_text(TEXT.replace(right, wrong))
    assert f"{file}:{line}: {key}" in places(read, file)


def test_the_whole_message(file: Path) -> None:
    file.write_text(TEXT.replace("survive: node", "survive: nods"))
    with pytest.raises(InputError) as caught:
        plan(file)
    wanted = f"{file}:28: policy.survive: unknown value 'nods'; did you mean 'node'?"
    assert [str(problem) for problem in caught.value.problems] == [wanted]


def test_lines_stay_when_other_keys_are_changed(file: Path) -> None:
    file.write_text(TEXT.replace("survive: node", "survive: nods"))
    found = places(plan, file, "users=7", "growth.per_month_frac=0.1", ttft_p95_ms=500)
    assert found == [f"{file}:28: policy.survive"]


def test_a_changed_key_is_reported_as_its_option(file: Path) -> None:
    assert places(plan, file, "policy.survive=nods") == ["--set policy.survive"]
    assert places(plan, file, "users=-5") == ["--set users: workloads[0].demand.users"]
    assert places(plan, file, "policy={survive: nods}") == ["--set policy: policy.survive"]
    assert places(plan, file, "site.pue=0.5") == ["--set site.pue"]
    assert places(plan, file, survive="nods") == ["--survive: policy.survive"]
    assert places(check, file, changes=["policy.survive=nods"]) == ["--what-if policy.survive"]


def test_an_option_that_mends_a_typo_leaves_no_error(file: Path) -> None:
    file.write_text(TEXT.replace("survive: node", "survive: nods"))
    assert plan(file, "policy.survive=node") == plan(file, survive="node")


def test_a_line_of_words_has_options_and_no_lines() -> None:
    words = Path("Llama-3.3-70B, 6000 users, chat")
    assert places(plan, words, survive="nods") == ["--survive: policy.survive"]
    assert places(plan, words, "users=-1") == ["--set users: workloads[0].demand.users"]


def test_a_flag_that_cannot_be_set_is_an_error_of_the_user(file: Path) -> None:
    file.write_text("name: x\nworkloads: 5\n")
    assert places(plan, file, users=5) == ["--users"]


def test_the_scenario_inside_a_plan_keeps_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    inner = "".join(f"    {line}\n" for line in TEXT.replace("node   #", "nods   #").splitlines())
    path.write_text("kind: gpuplan-plan\nprovenance:\n  scenario:\n" + inner)
    assert scenario_document(path).data["name"] == "chat"
    assert places(plan, path) == [f"{path}:31: policy.survive"]


def test_trees_of_python_are_plain_values() -> None:
    document = document_from_dict({"a": (1, 2), "b": {"c": None}}, name="mine")
    assert document == Document(name="mine", data={"a": [1, 2], "b": {"c": None}})
    assert document.place(("b", "c")) == "mine: b.c"
    deep: dict[str, object] = {}
    for _ in range(60):
        deep = {"a": deep}
    for tree, place in [({"a": {1: 2}}, "a"), ({"a": [{3}]}, "a[0]"), (deep, "a.a")]:
        with pytest.raises(InputError) as caught:
            document_from_dict(tree, name="mine")
        assert caught.value.problems[0].where.startswith(place)


def test_part_and_value_do_not_change_the_document() -> None:
    document = read_yaml_text("a:\n  b: 1\n  c: 2\n", name="s")
    changed = document.with_value(("a", "b"), 5, origin="--b")
    assert (document.data, changed.data) == ({"a": {"b": 1, "c": 2}}, {"a": {"b": 5, "c": 2}})
    assert (changed.line_of(("a", "b")), changed.line_of(("a", "c"))) == (None, 3)
    assert document.part(("a",)).line_of(("c",)) == 3

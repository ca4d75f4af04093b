"""Keys of a scenario are changed by name; what cannot be changed is told."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.errors import InputError
from gpuplan.inputs.documents.document import Document
from gpuplan.inputs.scenario.read import key_path, with_changes


def changed(tree, changes):
    return with_changes(Document(name="s.yaml", data=tree), changes).data


TREE = {"name": "x", "workloads": [{"demand": {"users": 5}}, {"demand": {"rate": 2}}]}


def test_a_whole_key_is_changed_and_the_original_stays():
    made = changed(TREE, ["workloads[0].demand.users=12000", "growth.per_month_frac=0.1"])
    assert made["workloads"][0]["demand"]["users"] == 12000
    assert made["growth"] == {"per_month_frac": 0.1}
    assert TREE["workloads"][0]["demand"]["users"] == 5


def test_a_single_name_finds_its_one_place():
    assert changed(TREE, ["users=7"])["workloads"][0]["demand"]["users"] == 7


def test_values_are_read_as_yaml():
    made = changed(TREE, ["policy.accelerators.allowed=[H100, L40S]", "a.b={low: 1, high: 2}"])
    assert made["policy"]["accelerators"]["allowed"] == ["H100", "L40S"]
    assert made["a"]["b"] == {"low": 1, "high": 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("demand=1", "2 keys have this name"),
        ("users", "no value"),
        ("users=", "no value"),
        ("=5", "names no key"),
        ("workloads[7].x=1", "2 entries"),
        ("name.first=1", "not keys"),
        ("a..b=1", "not a key"),
    ],
)
def test_what_cannot_be_changed_is_told(change, said):
    with pytest.raises(InputError, match=said):
        changed(TREE, [change])


def test_all_faults_at_once():
    with pytest.raises(InputError) as caught:
        changed(TREE, ["users", "=5"])
    assert len(caught.value.problems) == 2


@given(st.text(max_size=40))
def test_any_text_is_changed_or_refused(text):
    with suppress(InputError):
        assert isinstance(changed(TREE, [text]), dict)


@given(st.lists(st.one_of(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), st.integers(0, 9)),
                min_size=1, max_size=5))  # fmt: skip
def test_a_path_is_read_as_it_is_shown(path):
    shown = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")
    assert list(key_path(shown)) == path

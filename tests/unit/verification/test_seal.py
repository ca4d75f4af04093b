"""Digests: the same however a number is written, another for any change."""

from hypothesis import given
from hypothesis import strategies as st

from gpuplan.verification.certify import digest_of, seal_checks, stored_seals

VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=5),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


@given(VALUES, VALUES)
def test_equal_values_have_equal_digests_and_others_have_not(one, other):
    assert (digest_of(one) == digest_of(other)) is (one == other and _kinds(one) == _kinds(other))


def _kinds(value):
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, bool):
        return "bool"
    # Nothing and below nothing are written differently.
    return repr(float(value)) if isinstance(value, int | float) else type(value).__name__


def test_whole_numbers_and_lists_are_what_they_say():
    assert digest_of({"a": 1, "b": (1, 2)}) == digest_of({"b": [1.0, 2.0], "a": 1.0})


def test_sections_are_sealed_one_by_one(document, failed):
    assert not failed(seal_checks(document, ()))
    document["charts"] = []
    assert failed(seal_checks(document, ())) == ["seal of charts"]


def test_a_section_without_a_seal_is_found(document, failed):
    document["certificate"] = [r for r in document["certificate"] if r["name"] != "seal of load"]
    found = failed(seal_checks(document, ()))
    assert "seals: one for each section" in found
    assert "seal of certificate" in found


def test_a_plan_that_was_never_certified_has_no_seals():
    assert stored_seals({"plan": {}}) is None

"""Two amounts and how they must relate."""

import math

import pytest

from gpuplan.verification import claims


def test_equal_within_its_tolerance():
    assert claims.equal("x", 1.01, 1.0, "s", tolerance=0.02).ok
    assert not claims.equal("x", 1.03, 1.0, "s", tolerance=0.02).ok
    assert claims.equal("x", 0.0, 0.0, "s").ok


def test_money_agrees_to_the_cent():
    assert claims.same_money("bill", 100.009, 100.0).ok
    assert not claims.same_money("bill", 100.02, 100.0).ok


@pytest.mark.parametrize(("claimed", "ok"), [(1.0, True), (2.0, True), (2.1, False)])
def test_at_most(claimed, ok):
    assert claims.at_most("x", claimed, 2.0, "").ok is ok


@pytest.mark.parametrize(("claimed", "ok"), [(1.9, False), (2.0, True), (3.0, True)])
def test_at_least(claimed, ok):
    assert claims.at_least("x", claimed, 2.0, "").ok is ok


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_agrees_with_nothing(odd):
    check = claims.equal("x", odd, 1.0, "")
    assert not check.ok
    assert isinstance(check.claimed, str)


def test_verdicts_are_words():
    check = claims.same_verdict("slo", claimed=True, found=False)
    assert (check.claimed, check.found, check.ok) == ("met", "violated", False)


def test_leaves_have_paths():
    found = dict(claims.leaves({"a": [1, {"b": "x"}], "c": None}))
    assert found == {"a[0]": 1, "a[1].b": "x", "c": None}


@pytest.mark.parametrize(
    ("share", "frac"), [("", 1.0), ("1/4", 0.25), ("3g.40gb", 3 / 7), ("7g.80gb", 1.0)]
)
def test_fractions_of_a_card(share, frac):
    assert claims.fraction_of({"share": share}) == pytest.approx(frac)


def test_a_replica_spans_its_layout():
    assert claims.n_per_replica({"tp": 4, "pp": 2, "dp": 2, "ep": 8, "cp": 1}) == 16
    assert claims.n_per_replica({"tp": 2, "pp": 1}) == 2

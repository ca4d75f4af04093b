"""Dated sums of a plan, broken one at a time."""

import pytest

from gpuplan.verification.money import cash_checks


def test_a_sound_plan_passes(document, failed):
    checks = [*cash_checks(document)]
    assert len(checks) >= 5
    assert not failed(iter(checks))


def test_a_file_without_dates_is_not_judged(document):
    document["plan"]["cash_flow"] = []
    assert not [*cash_checks(document)]


@pytest.mark.parametrize(
    ("key", "factor", "name"),
    [
        ("usd", 1.01, "cash flow: sums make the total"),
        ("span_s", 2.0, "cash flow: within the span"),
        ("span_s", 0.5, "period 1: its sums make its month"),
        ("usd", 1.01, "cash flow: present value without a discount"),
    ],
)
def test_sums_and_their_times_are_bound(document, failed, key, factor, name):
    document["plan"]["cash_flow"][0][key] *= factor
    assert name in failed(cash_checks(document))


@pytest.mark.parametrize(
    ("key", "factor", "name"),
    [
        ("usd_per_month", 1.01, "period 1: its sums make its month"),
        ("n_accelerators", 2, "periods: accelerators provisioned at most"),
        ("n_accelerators", 0, "periods: accelerators provisioned at least"),
    ],
)
def test_periods_are_bound(document, failed, key, factor, name):
    document["plan"]["by_period"][0][key] *= factor
    assert name in failed(cash_checks(document))


def test_a_discount_makes_the_present_value_another(document, failed):
    document["provenance"]["scenario"]["budget"] = {"discount_rate_frac_per_year": 0.1}
    document["plan"]["present_value_usd"] *= 0.9
    assert not failed(cash_checks(document))

"""Figures for people: few digits, the unit beside them, the same everywhere."""

import pytest

from gpuplan.domain.provenance import Estimate
from gpuplan.report.formats import (
    accelerator_name,
    chance,
    count,
    frac,
    gib,
    kw,
    params,
    percent,
    plural,
    signed_usd,
    small_bytes,
    span,
    three,
    usd,
    usd_range,
    whole,
)
from gpuplan.units import DAY, GIB, HOUR, MIB, MINUTE, YEAR


def estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, tier="estimated")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "$0.00"),
        (2.5, "$2.50"),
        (99.994, "$99.99"),
        (100.0, "$100"),
        (8665.39, "$8,665"),
        (-4983.2, "−$4,983"),
        (-0.5, "−$0.50"),
        (1.5e6, "$1,500,000"),
    ],
)
def test_dollars_are_whole_where_the_sum_is_large(amount, text):
    assert usd(amount) == text


def test_differences_always_have_a_sign():
    assert [signed_usd(v) for v in (365, 0, -219)] == ["+$365", "+$0.00", "−$219"]


def test_a_range_stands_behind_its_value():
    assert usd_range(estimate(8665, 5199, 10398)) == "$8,665 ($5,199 … $10,398)"


@pytest.mark.parametrize(("low", "high"), [(8665, 8665), (8664.9, 8665.2)])
def test_a_range_that_would_read_the_same_is_not_written(low, high):
    assert usd_range(estimate(8665, low, high)) == "$8,665"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0318, "31.8 ms"),
        (0.9999, "999.9 ms"),
        (2.0, "2.00 s"),
        (299.0, "299.00 s"),
        (6 * MINUTE, "6.0 min"),
        (3.8 * HOUR, "3.8 h"),
        (45 * DAY, "45.0 days"),
        (YEAR, "12 months"),
        (3 * YEAR, "3 years"),
        (2.5 * YEAR, "2.5 years"),
    ],
)
def test_spans_of_time_have_the_unit_that_people_use(seconds, text):
    assert span(seconds) == text


def test_longer_spans_never_read_shorter():
    spans = [1e-4, 0.5, 1.0, 299.0, 301.0, 2 * HOUR, 2 * DAY, 700 * DAY, 3 * YEAR]
    units = ["ms", "s", "min", "h", "days", "years"]
    places = [units.index(span(seconds).split()[-1]) for seconds in spans]
    assert places == sorted(places)


@pytest.mark.parametrize(("watts", "text"), [(604.0, "604 W"), (7400.0, "7.4 kW"), (999, "999 W")])
def test_power_is_in_kilowatts_from_one_on(watts, text):
    assert kw(watts) == text


def test_bytes_are_binary_and_say_so():
    assert gib(1.5 * GIB) == "1.50 GiB"
    assert small_bytes(131072) == "128.0 KiB"
    assert small_bytes(2048) == "2,048 B"
    assert small_bytes(3 * MIB) == "3.00 MiB"
    assert small_bytes(2 * GIB) == gib(2 * GIB)
    assert small_bytes(200 * 1024) == "200.0 KiB"


def test_parameters_are_counted_in_billions_or_millions():
    assert params(70.55e9) == "70.55 B"
    assert params(25.6e6) == "25.6 M"


def test_shares_are_percent_with_a_space():
    assert frac(0.1234) == "12.3 %"
    assert percent(0.1234) == "12 %"
    assert percent(1.0) == "100 %"
    assert (chance(0.994), chance(0.995), chance(1.0)) == ("99 %", "> 99 %", "> 99 %")


def test_counts_have_separators_and_nouns_their_number():
    assert count(1234567.4) == "1,234,567"
    assert plural(1, "replica") == "1 replica"
    assert plural(0, "replica") == "0 replicas"
    assert plural(1200, "request") == "1,200 requests"


@pytest.mark.parametrize(
    ("figure", "text"), [(1234.5, "1,234"), (99.94, "99.9"), (0.012345, "0.0123"), (-250.0, "-250")]
)
def test_predictions_show_three_digits(figure, text):
    assert three(figure) == text


def test_whole_numbers_of_things_are_integers():
    assert isinstance(whole(320.0), int)
    assert whole(320.5) == 320.5


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        ("h100-sxm", "H100 SXM"),
        ("a100-sxm-80gb", "A100 SXM 80GB"),
        ("mi300x", "MI300X"),
        ("tpu-v5p", "TPU v5p"),
        ("gaudi2", "Gaudi2"),
        ("rtx-6000-ada", "RTX 6000 Ada"),
    ],
)
def test_accelerators_are_written_as_their_makers_do(identifier, name):
    assert accelerator_name(identifier) == name

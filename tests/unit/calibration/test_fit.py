"""The fit on data whose answer is known."""

import numpy as np
import pytest

from gpuplan.calibration.fit import Observed, columns, fit, fitted, row_values
from gpuplan.domain.calibration.constants import Constant, Effect

RATE = Constant(name="rate", value=1.0, log_sd=2.0, effects=(Effect(kinds=("chip",), log_sd=0.5),))
SHARE = Constant(name="share", value=0.5, log_sd=1.0, most=1.0)


def synthetic(n: int = 400, *, outliers: int = 0):
    rng = np.random.default_rng(7)
    chips = ["a", "b", "c", "rare"]
    labels = [{"chip": chips[min(i % 100 // 33, 2)]} for i in range(n - 1)] + [{"chip": "rare"}]
    size = rng.uniform(1, 100, n)
    true = np.array([{"a": 2.0, "b": 3.0, "c": 4.5, "rare": 30.0}[row["chip"]] for row in labels])
    noise = rng.normal(0, 0.02, n)
    noise[:outliers] += 3.0
    log_value = np.log(true * size + 10.0) + noise
    return labels, size, Observed(np.arange(n), log_value, np.ones(n))


def fitted_rates(*, outliers: int = 0):
    labels, size, observed = synthetic(outliers=outliers)
    cols = columns([RATE], labels)
    beta = fit(cols, lambda v: np.log(v["rate"] * size + 10.0), observed)
    found = fitted([RATE], cols, beta, n_rows=len(labels), sources=["made up"])
    return {chip: found.values({"chip": chip})["rate"] for chip in ("a", "b", "c", "rare", "new")}


def test_constants_and_labels_are_recovered():
    rates = fitted_rates()
    assert rates["a"] == pytest.approx(2.0, rel=0.03)
    assert rates["b"] == pytest.approx(3.0, rel=0.03)
    assert rates["c"] == pytest.approx(4.5, rel=0.03)


def test_outliers_hardly_move_the_fit():
    assert fitted_rates(outliers=20)["a"] == pytest.approx(2.0, rel=0.08)


def test_a_label_never_seen_takes_the_centre_of_the_others():
    rates = fitted_rates()
    assert 2.0 < rates["new"] < 4.5 * 2


def test_one_row_moves_its_label_less_than_many_would():
    assert fitted_rates()["rare"] < 30.0


def test_bounded_constants_stay_below_their_bound():
    n = 50
    labels = [{} for _ in range(n)]
    cols = columns([SHARE], labels)
    # The data asks for 2.0, which physics forbids.
    observed = Observed(np.arange(n), np.log(np.full(n, 2.0)), np.ones(n))
    beta = fit(cols, lambda v: np.log(v["share"]), observed)
    assert np.all(row_values(cols, beta)["share"] < 1.0)


def test_stored_values_equal_those_of_the_fit():
    labels, size, observed = synthetic()
    cols = columns([RATE, SHARE], labels)
    beta = fit(cols, lambda v: np.log(v["rate"] * v["share"] * size + 10.0), observed)
    found = fitted([RATE, SHARE], cols, beta, n_rows=1, sources=[])
    rows = row_values(cols, beta)
    for i in (0, 50, 399):
        assert found.values(labels[i])["rate"] == pytest.approx(rows["rate"][i])
        assert found.values(labels[i])["share"] == pytest.approx(rows["share"][i])


def test_labels_start_from_what_parts_suggest():
    told = Constant(
        name="rate", value=1.0, log_sd=0.1,
        effects=(Effect(kinds=("chip",), log_sd=0.1, prior=(("new", -0.7),)),),
    )  # fmt: skip
    labels, size, observed = synthetic()
    cols = columns([told], labels)
    beta = fit(cols, lambda v: np.log(v["rate"] * size + 10.0), observed)
    found = fitted([told], cols, beta, n_rows=1, sources=[])
    centre = found.values({"chip": "never heard of"})["rate"]
    assert found.values({"chip": "new"})["rate"] == pytest.approx(centre * np.exp(-0.7))

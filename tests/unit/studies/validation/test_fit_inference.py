import numpy as np
import pytest

from gpuplan.calibration.tables import read_rows
from gpuplan.studies.validation.fit_inference import (
    CONCURRENCY_WEIGHT,
    OPEN_LOOP_WEIGHT,
    by_model,
    cross_residuals,
    study,
    weights,
)
from gpuplan.studies.validation.inference_table import read_table


def saturated(name):
    return next(
        dict(row)
        for row in read_rows("llm_inference.csv")
        if row["regime"] == "max_load" and row["model"].startswith(name)
    )


def served(regime):
    return next(
        dict(row)
        for row in read_rows("llm_inference.csv")
        if row["regime"] == regime and row["measured_tpot_mean_ms"]
    )


@pytest.fixture(scope="module")
def few():
    """One row of each regime that is weighed apart."""
    rows = [served("poisson"), served("fixed_concurrency"), saturated("Llama-3.1-70B")]
    return study(read_table(rows))


def weight_of(of, regime, metric):
    found = weights(of, np.ones(len(of.observed.row), dtype=bool))
    regimes = np.array([setup.load.regime for setup in of.table.setups])[of.observed.row]
    return float(found[(regimes == regime) & (of.observed.metric == metric)][0])


def test_latencies_of_open_loops_tell_of_the_queue_and_weigh_nothing(few):
    whole = weight_of(few, "max_load", "output_tokens_per_s")
    assert weight_of(few, "poisson", "output_tokens_per_s") == pytest.approx(whole)
    for metric in ("tpot_mean_ms", "ttft_mean_ms"):
        assert weight_of(few, "poisson", metric) == OPEN_LOOP_WEIGHT == 0.0
    known = weight_of(few, "fixed_concurrency", "tpot_mean_ms")
    assert known == pytest.approx(CONCURRENCY_WEIGHT * whole)


def test_folds_may_be_fitted_in_any_order_by_anyone():
    two = study(read_table([saturated("Llama-3.1-70B"), saturated("Mixtral-8x7B")]))
    asked = []

    def backwards(left_out, numbers):
        asked.extend(numbers)
        return [left_out(number) for number in reversed(numbers)][::-1]

    one_by_one = cross_residuals(two, by_model, n_folds=2)
    assert np.isfinite(one_by_one).all()
    assert cross_residuals(two, by_model, n_folds=2, run=backwards) == pytest.approx(one_by_one)
    assert asked == [0, 1]

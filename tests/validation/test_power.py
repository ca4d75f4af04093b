"""Power against published draws, every row predicted from outside its fit."""

import numpy as np
import pytest

from gpuplan.calibration import power_fit
from gpuplan.calibration.power import CAP_CURVES, cap_estimate, power_constants
from gpuplan.catalog.load import read_catalog
from gpuplan.performance import power
from gpuplan.pipeline import validate_other as v


def test_text_serving_of_a_new_accelerator() -> None:
    found = v.score_folds(v.power_folds(lambda row: row.accelerator, ("text",)))
    assert found.median_ape < 0.09


def test_stored_constants_are_those_of_the_table() -> None:
    fitted = v.fit_power(power_fit.read_power_rows())
    for name, family in (("h100-sxm", "Hopper"), ("b200-sxm", "Blackwell"), ("mi300x", "none")):
        values = fitted.values({"family": family, "waits": "text"})
        stored = power_constants(read_catalog().accelerators[name])  # type: ignore[index]
        assert stored.memory_ratio == pytest.approx(values["memory_ratio"], rel=1e-2)
        assert stored.compute_ratio == pytest.approx(values["compute_ratio"], rel=1e-2)


def test_caps_of_training_runs() -> None:
    errors = v.cap_errors()
    assert np.median(np.abs(np.expm1(errors["light"]))) < 0.03
    assert np.median(np.abs(np.expm1(errors["saturated"]))) < 0.05


def test_cap_ranges_hold_most_slowdowns() -> None:
    inside = []
    for row in power_fit.read_cap_rows():
        if row.cap_w < 0.5 * row.limit_w:
            continue
        slow = [
            power.cap_slowdown(row.uncapped_w, row.cap_w, limit=row.limit_w, curve=CAP_CURVES[k])
            for k in ("light", "saturated")
        ]
        found = cap_estimate(slow[0], slow[1], is_saturated=row.is_large_model)
        inside.append(found.low <= max(row.slowdown, 1.0) <= found.high)
    assert 0.76 < np.mean(inside) < 0.97


def test_draw_under_a_cap() -> None:
    rows = power_fit.read_cap_rows()
    errors = [abs(power.capped_power_w(r.uncapped_w, r.cap_w) / r.power_w - 1) for r in rows]
    assert np.median(errors) < 0.03

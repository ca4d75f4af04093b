"""Power against published draws, every row predicted from outside its fit."""

import csv
import zlib

import numpy as np
import pytest
from fits import held_out as v
from fits import power as power_fit

from gpuplan.calibration.power import (
    CAP_CURVES,
    busy_frac,
    cap_estimate,
    power_constants,
    power_estimate,
)
from gpuplan.catalog.load import read_catalog
from gpuplan.errors import InputError
from gpuplan.performance import power
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.power.serving import serving_power
from gpuplan.studies.validation.inference_table import benchmark_of
from shared_data import shared_file
from validation.node_power_folds import capped_power_w


def busy_rows() -> list[power_fit.PowerRow]:
    return [row for row in power_fit.read_power_rows() if row.work in power_fit.BUSY_WORK]


def fold_of(row: power_fit.PowerRow) -> int:
    return zlib.crc32(row.model.encode()) % 6


def test_draw_of_new_models_under_load() -> None:
    errors = []
    for fold in range(6):
        rows = power_fit.read_power_rows()
        fitted = v.POWER.fit([row for row in rows if fold_of(row) != fold])
        held = [row for row in busy_rows() if fold_of(row) == fold]
        errors += v.POWER.errors(held, fitted).tolist()
    assert len(errors) > 850
    assert np.median(np.abs(np.expm1(np.array(errors)))) < 0.085


def test_stored_constants_are_those_of_the_table() -> None:
    fitted = v.POWER.fit(power_fit.read_power_rows())
    for name, family in (("h100-sxm", "Hopper"), ("b200-sxm", "Blackwell"), ("mi300x", "none")):
        values = power_fit.constants_of(fitted.values({"family": family, "waits": "text"}))
        stored = power_constants(read_catalog().accelerators[name])  # type: ignore[index]
        assert stored.memory_ratio == pytest.approx(values.memory_ratio, rel=1e-2)
        assert stored.compute_ratio == pytest.approx(values.compute_ratio, rel=1e-2)


def test_ranges_hold_four_fifths() -> None:
    """In the fit's own rows the ranges from left-out rows must hold a little more than 80 %."""
    inside = []
    for row in busy_rows():
        card = read_catalog().accelerators[row.accelerator]  # type: ignore[index]
        busy = busy_frac(
            row.work,
            step_s=row.step_s,
            n_accelerators=row.n_accelerators,
            asked_frac=row.use.asked_frac,
        )
        watts = v.predicted_power_w(row, power_constants(card, row.work), busy)
        found = power_estimate(watts, card, row.work)
        inside.append(found.low <= row.power_w <= max(found.high, 0.98 * (card.power.limit_w or 0)))
    assert 0.76 < np.mean(inside) < 0.92


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
    errors = [abs(capped_power_w(r.uncapped_w, r.cap_w) / r.power_w - 1) for r in rows]
    assert np.median(errors) < 0.03


def test_power_and_energy_of_predicted_serving() -> None:
    """The whole way: rate predicted, then draw, then joules per token."""
    errors: dict[str, list[float]] = {"power_w": [], "energy_j_per_output_token": []}
    with shared_file("measured/llm_inference.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["measured_power_w"]]
    for row in rows[::4]:
        try:
            setup = serving_setup(row)
        except InputError:
            continue
        prediction = predict_inference(setup, benchmark=benchmark_of(row))
        for metric, found in serving_power(setup, prediction, note=row["layout_note"]).items():
            measured = row[f"measured_{metric}"]
            if measured:
                errors[metric].append(abs(found.value / float(measured) - 1))
    assert len(errors["power_w"]) > 100
    assert np.median(errors["power_w"]) < 0.1
    assert np.median(errors["energy_j_per_output_token"]) < 0.15

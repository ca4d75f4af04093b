"""Parameter counts against those that the libraries build from the same configurations."""

import csv
import json
from pathlib import Path

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.model.network import Model

TABLE = Path(__file__).with_name("oracle_counts.csv")
TOLERANCE = 0.005


def _rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["count"]]


def _model(row: dict[str, str]) -> Model:
    if not row["config"]:
        return find_model(row["name"])
    return read_model(json.loads(row["config"]), name=row["name"])


@pytest.mark.parametrize(
    "row", [row for row in _rows() if not row["config"]], ids=lambda r: r["name"]
)
def test_catalog_model_has_the_parameters_the_library_builds(row):
    assert find_model(row["name"]).n_params == pytest.approx(int(row["count"]), rel=TOLERANCE)


@pytest.mark.parametrize("kind", sorted({row["name"] for row in _rows() if row["config"]}))
def test_type_of_model_has_the_parameters_the_library_builds(kind):
    for row in _rows():
        if row["config"] and row["name"] == kind:
            count = int(row["count"])
            assert _model(row).n_params == pytest.approx(count, rel=TOLERANCE), row["config"]


def test_nearly_all_counts_are_exact():
    rows = _rows()
    n_exact = sum(_model(row).n_params == int(row["count"]) for row in rows)
    assert n_exact / len(rows) > 0.93


def test_nearly_every_catalog_model_or_one_of_its_layers_was_counted_by_a_library_or_publisher():
    counted = {row["name"] for row in _rows() if not row["config"]}
    counted |= {row["id"] for row in packaged_rows("gpuplan.catalog", "data/model_params.csv")}
    known = {find_model(name).stacks for name in counted & {*models_in_catalog()}}
    others = set(models_in_catalog()) - counted
    missing = {name for name in others if find_model(name).stacks not in known}  # not of one shape
    assert len(missing) / len(models_in_catalog()) < 0.05, sorted(missing)

"""Answers in Python: documents, tables, one line, a fragment of a page."""

import json

import polars as pl
import pytest

import gpuplan
from gpuplan.api.presenter import flat_rows, shown
from gpuplan.domain.result import Result


@pytest.fixture(scope="module")
def fit():
    return gpuplan.fit("Llama-3.1-8B", "H100", gpuplan.FitRequest(n_sequences=8))


@pytest.fixture(scope="module")
def curve():
    return gpuplan.scale(
        gpuplan.ScaleRequest(model="Llama-3.1-8B", accelerator="H100", counts=(8, 16, 32))
    )


@pytest.fixture(scope="module")
def simulation():
    lengths = gpuplan.TokenLengths(shape="fixed", mean_tokens=200.0)
    load = gpuplan.drawn_load(
        gpuplan.DrawnLoad(requests_per_s=5.0, input=lengths, output=lengths, n_requests=50)
    )
    return gpuplan.simulate("Llama-3.1-8B", "H100", load)


def test_a_document_is_what_the_command_prints(fit):
    document = fit.to_dict()
    assert document["fits"] is True
    assert document["headroom_bytes"] == round(fit.headroom_bytes)
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize("name", ["fit", "curve", "simulation"])
def test_a_result_is_one_line(name, request):
    text = repr(request.getfixturevalue(name))
    assert "\n" not in text
    assert 10 < len(text) < 300


def test_a_curve_is_a_table(curve):
    table = curve.to_polars()
    assert isinstance(table, pl.DataFrame)
    assert table["n_accelerators"].to_list() == [8, 16, 32]
    assert table["speedup"].is_sorted()


def test_a_simulation_is_a_table_of_requests(simulation):
    table = simulation.to_polars()
    assert len(table) == 50
    assert (table["e2e_s"] >= table["ttft_s"]).all()
    assert simulation.to_dict()["n_completed"] == 50


def test_what_is_no_table_says_so(fit):
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        fit.to_polars()


def test_a_notebook_shows_tables_with_everything_escaped(curve):
    page = curve._repr_html_()
    assert page.count("<table>") == page.count("</table>") >= 1
    assert "<script" not in page


def test_every_kind_of_result_can_be_shown():
    kinds = {cls.__name__ for cls in Result.__subclasses__()}
    assert kinds <= shown().keys()
    assert {"Fit", "Answer", "Simulation"} <= kinds | shown().keys()


def test_nested_cells_become_columns():
    rows = flat_rows([{"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2]}])
    assert rows == [{"a.b": 1, "a.c.d": 2, "e": "1; 2"}]


def test_results_compare_and_hash_by_value(fit):
    again = gpuplan.fit("Llama-3.1-8B", "H100", gpuplan.FitRequest(n_sequences=8))
    assert again == fit
    assert again != gpuplan.fit("Llama-3.1-8B", "H100", gpuplan.FitRequest(n_sequences=9))

"""The notebook tour runs from its first cell to its last, as a reader would see it."""

import importlib.util

import pytest

from shared_data import ROOT

pytest.importorskip("marimo", reason="marimo is not installed")


def test_the_tour_runs_and_ends_in_a_plan():
    spec = importlib.util.spec_from_file_location("tour", ROOT / "examples" / "tour.py")
    tour = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tour)
    _, named = tour.app.run()
    answer = named["answer"]
    assert answer.feasible
    assert answer.to_dict()["comparison"]
    assert "<table" in answer._repr_html_()

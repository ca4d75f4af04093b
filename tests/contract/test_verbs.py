"""One set of verbs: every command is an api function; public names are few and explained."""

import inspect

import pytest
import typer

import gpuplan
from gpuplan import api
from gpuplan.cli.app import app

# command → the api verb that answers it
VERBS = {
    "calibrate": "calibrate",
    "check": "check",
    "design": "design",
    "eta": "eta",
    "diff": "diff",
    "explain": "explain",
    "diagnose": "diagnose",
    "forecast": "forecast",
    "learn": "learn",
    "probe": "probe",
    "replan": "replan",
    "score": "score",
    "top": "top_frames",
    "watch": "watch_look",
    "fit": "fit",
    "fit-training": "training_fit",
    "init": "scenario_template",
    "plan": "plan",
    "predict": "predict",
    "predict-network": "predict_network",
    "predict-table": "predict_table",
    "predict-training": "predict_training",
    "render": "render",
    "report": "report",
    "roofline": "roofline",
    "scale": "scale",
    "simulate": "simulate",
    "validate": "validate",
    "verify": "verify",
    "scenario check": "read_scenario",
    "scenario write": "describe",
    "scenario schema": "scenario_schema",
    "catalog list": "catalog_list",
    "catalog show": "catalog_show",
    "catalog check": "catalog_check",
    "catalog overlay": "catalog_overlay",
    "catalog update": "catalog_update",
}
DOORS = {"serve", "sweep"}  # start a door of their own, or many verbs: each has its own tests


def commands(group, prefix: str = "") -> set[str]:
    found = set()
    for name in group.list_commands(None):
        command, full = group.get_command(None, name), f"{prefix}{name}"
        is_group = hasattr(command, "list_commands")
        found |= commands(command, f"{full} ") if is_group else {full}
    return found


def test_every_command_has_its_verb():
    assert commands(typer.main.get_command(app)) == set(VERBS) | DOORS


@pytest.mark.parametrize("verb", sorted(set(VERBS.values())))
def test_verb_is_explained(verb):
    assert inspect.getdoc(getattr(api, verb))


def test_public_names_are_sorted_and_every_verb_is_among_them():
    assert gpuplan.__all__ == sorted(gpuplan.__all__)
    doors_only = {"catalog_check", "catalog_list", "catalog_overlay", "catalog_update", "diff"}
    doors_only |= {
        "describe",
        "explain",
        "scenario_schema",
        "scenario_template",
        "top_frames",
        "watch_look",
    }
    assert set(VERBS.values()) - doors_only <= set(gpuplan.__all__)


def test_python_and_command_line_agree():
    answer = gpuplan.fit("Llama-3.1-8B", "H100", gpuplan.FitRequest(n_sequences=4))
    document = api.fit_sheet(answer).document
    assert document["concurrency"] == 4
    assert document["headroom_bytes"] == round(answer.headroom_bytes)

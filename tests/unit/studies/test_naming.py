"""Names as people type them: groups, aliases, formats, fetched models, overlays."""

import json
from dataclasses import replace

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.scenario.terms import Choice
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.naming import (
    allowed_ids,
    formats_named,
    group_ids,
    lexicon,
    model_named,
    plannable,
    read_known_scenario,
    with_known_places,
    with_overlays,
)

CATALOG = read_catalog()
PLAIN = {
    "version": 1,
    "name": "x",
    "workloads": [{"name": "w", "kind": "generic", "work": {"accelerators": 4}}],
}


def policy(**choice):
    plain = scenario_from_dict(PLAIN, name="s").policy
    return replace(plain, accelerators=Choice(**choice))


def announced(**tree):
    scenario = scenario_from_dict({**PLAIN, **tree}, name="s")
    chosen = plannable(CATALOG, scenario).accelerators.values()
    return {str(card.id) for card in chosen if card.is_announced}


def test_what_is_announced_enters_no_plan_unasked():
    assert {c.id for c in CATALOG.accelerators.values() if c.is_announced} == {"vr200", "mi455x"}
    assert announced() == set()
    assert announced(policy={"accelerators": {"allowed": ["nvidia", "amd"]}}) == set()
    assert announced(policy={"accelerators": {"allowed": ["Vera Rubin", "H100"]}}) == {"vr200"}
    price = {"accelerator": "MI455X", "usd_per_accelerator": 30_000}
    assert announced(prices={"hardware": [price]}) == {"mi455x"}


def test_a_vendor_stands_for_its_accelerators_and_no_cpu():
    found = group_ids(" AMD ", CATALOG)
    assert "mi300x" in found
    assert not any(name.startswith("cpu-") for name in found)
    vendors = {str(card.id) for card in CATALOG.accelerators.values() if card.vendor == "AMD"}
    assert found == {name for name in vendors if not name.startswith("cpu-")}


def test_a_kind_stands_for_all_ids_that_begin_with_it():
    found = group_ids("TPU", CATALOG)
    assert found == {str(x) for x in CATALOG.accelerators if str(x).startswith("tpu")}
    assert found
    assert group_ids("h100-sxm", CATALOG) == frozenset()


def test_names_groups_and_aliases_become_ids():
    (allowed, forbidden), assumed = allowed_ids(
        policy(allowed=("H100", "tpu"), forbidden=("mi300x",)), CATALOG
    )
    assert "h100-sxm" in allowed
    assert group_ids("tpu", CATALOG) <= allowed
    assert forbidden == {"mi300x"}
    # "H100" is several products: which one was taken is said.
    assert any("h100" in note.value.lower() for note in assumed)


def test_no_names_allow_everything_and_assume_nothing():
    assert allowed_ids(policy(), CATALOG) == ((frozenset(), frozenset()), ())


def test_an_unknown_accelerator_is_an_error_with_a_fix():
    with pytest.raises(InputError):
        allowed_ids(policy(allowed=("h1000",)), CATALOG)


def test_formats_are_found_and_every_unknown_one_is_named():
    weights, cache = formats_named("fit", "fp8", None)
    assert weights is not None
    assert (weights.name, cache) == ("fp8", None)
    with pytest.raises(InputError) as caught:
        formats_named("fit", "fp9", "int3")
    assert [problem.where for problem in caught.value.problems] == ["--precision", "--kv-precision"]


def test_a_model_of_the_package_wins_and_an_unknown_one_is_an_error(tmp_path):
    name = "meta-llama/Llama-3.1-8B-Instruct"
    assert model_named(name, tmp_path) == model_named(name)
    with pytest.raises(InputError):
        model_named("nobody/no-such-model", tmp_path)


def test_an_overlay_replaces_a_fact_and_says_so(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({"accelerators": {"h100-sxm": {"tdp_w": 650}}}))
    plain = CATALOG.accelerators["h100-sxm"].power.limit_w
    changed = with_overlays(CATALOG, [path])
    assert (plain, changed.accelerators["h100-sxm"].power.limit_w) == (700.0, 650.0)
    [override] = changed.overrides
    assert (override.item, override.overlay) == ("h100-sxm", str(path))
    assert CATALOG.overrides == ()


UNKNOWN = """version: 1
name: x
workloads:
  - name: w
    kind: batch_inference
    model: Llama-9-70B
    batch: {docs: 10, deadline_h: 1}
    request: {input_tokens: 10, output_tokens: 1}
policy:
  accelerators:
    allowed: [H100, X200]
owned:
  - {accelerator: H100, nodes: 1, accelerators_per_node: 8}
"""


def test_names_that_the_catalog_lacks_are_told_at_their_lines(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(UNKNOWN)
    with pytest.raises(InputError) as caught:
        read_known_scenario(path)
    first, second = caught.value.problems
    assert "scenario.yaml:6" in first.where
    assert "nearest" in first.fix
    assert "scenario.yaml:11" in second.where
    path.write_text(UNKNOWN.replace("Llama-9-70B", "llama 70b").replace(", X200", ""))
    assert read_known_scenario(path).workloads[0].name == "w"


def test_a_measured_capacity_stands_in_for_a_model(tmp_path):
    path = tmp_path / "scenario.yaml"
    own = "model: Llama-9-70B\n    capacity: [{accelerator: H100, requests_per_s: 5}]"
    text = UNKNOWN.replace("model: Llama-9-70B", own).replace(", X200", "")
    path.write_text(text)
    assert read_known_scenario(path).workloads[0].capacities


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("llama 70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("SDXL", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("Llama-3.3-70B-FP8", "Llama-3.3-70B-FP8"),
        ("all", None),
        ("step", None),
        ("tpu", None),
        ("GPT-5", None),
    ],
)
def test_only_what_is_surely_a_name_is_a_model(text, meant):
    found = lexicon().model(text)
    assert (found.name if found else None) == meant


def test_clouds_places_and_boards_by_the_words_of_people():
    names = lexicon()
    assert names.cloud("Google Cloud") == "gcp"
    assert names.cloud("do") is None
    assert names.place("Europe") == "EU"
    assert names.place("Germany") == "DEU"
    assert names.place("nowhere") is None
    assert names.card("H100s") == "H100"
    assert names.card("table") is None
    assert "Llama-3.3-70B" in names.nearest_models("Llma-3.3-70B")


def test_clouds_and_places_of_a_policy_become_the_ids_of_offers():
    choice = {"clouds": {"allowed": ["Amazon"]}, "regions": {"forbidden": ["frankfurt"]}}
    scenario = with_known_places(scenario_from_dict(PLAIN | {"policy": choice}, name="s"))
    assert scenario.policy.clouds.allowed == ("aws",)
    assert "aws:eu-central-1" in scenario.policy.regions.forbidden


def test_an_unknown_cloud_of_a_file_is_an_error_at_its_line(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(PLAIN | {"policy": {"clouds": {"allowed": ["amazno"]}}}))
    with pytest.raises(InputError, match="amazno"):
        read_known_scenario(path)

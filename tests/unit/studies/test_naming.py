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
    model_named,
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

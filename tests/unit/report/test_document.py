"""Documents and sheets: keys from attributes, assumptions and overrides the same everywhere."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from gpuplan.domain.provenance import Assumption, Estimate, Override
from gpuplan.domain.ranges import Range
from gpuplan.domain.sheet import Table
from gpuplan.report.document import (
    SCHEMA_VERSION,
    assumption_lines,
    override_lines,
    pick,
    pick_each,
    plain,
    result_document,
    result_sheet,
    sourced,
)

NODE = SimpleNamespace(name="n1", n_gpus=8, board=SimpleNamespace(limit_w=700.0))
ESTIMATE = Estimate(value=2.0, low=1.0, high=3.0, tier="fitted", sources=("paper",))
ASSUMED = Assumption(what="engine", value="vllm", why="usual", change="--engine", source="docs")
BARE = Assumption(what="peak", value="1", why="none given", change="", source="")
OVERLAY = Override(
    item="h100-sxm", quantity="price", catalog_value="2", overlay_value="3", overlay="mine.yaml"
)


def test_keys_are_attributes_or_new_names_of_them():
    assert pick(NODE, "name", gpus="n_gpus") == {"name": "n1", "gpus": 8}


def test_dots_reach_inside():
    assert pick(NODE, limit_w="board.limit_w") == {"limit_w": 700.0}


def test_an_attribute_that_is_not_there_is_an_error_not_a_null():
    with pytest.raises(AttributeError):
        pick(NODE, "colour")


def test_of_many_the_order_is_kept():
    nodes = [SimpleNamespace(name=name) for name in "cab"]
    assert pick_each(nodes, "name") == [{"name": "c"}, {"name": "a"}, {"name": "b"}]


def test_estimates_and_ranges_are_three_figures():
    assert plain(ESTIMATE) == {"value": 2.0, "low": 1.0, "high": 3.0, "tier": "fitted"}
    assert plain(Range(low=1.0, mid=2.0, high=4.0)) == {"value": 2.0, "low": 1.0, "high": 4.0}
    assert sourced(ESTIMATE)["sources"] == ["paper"]


def test_columns_tuples_and_mappings_become_json():
    value = {"a": (1, np.array([1.5, 2.0])), "b": None, "c": np.float64(0.5)}
    assert json.loads(json.dumps(plain(value))) == {"a": [1, [1.5, 2.0]], "b": None, "c": 0.5}


def test_a_document_begins_with_its_version_and_ends_with_what_it_rests_on():
    made = result_document({"fits": True}, assumptions=(ASSUMED,), overrides=(OVERLAY,))
    assert list(made) == ["schema_version", "fits", "assumptions", "overrides"]
    assert made["schema_version"] == SCHEMA_VERSION
    assert made["assumptions"][0] == {
        "what": "engine", "value": "vllm", "why": "usual", "change": "--engine", "source": "docs",
    }  # fmt: skip
    assert made["overrides"][0]["overlay"] == "mine.yaml"


def test_what_a_result_does_not_have_has_no_key():
    assert set(result_document({})) == {"schema_version"}
    assert result_document({}, assumptions=())["assumptions"] == []


def test_lines_say_how_to_change_what_was_assumed():
    assert assumption_lines((ASSUMED, BARE)) == (
        "engine: vllm (usual; change with --engine)",
        "peak: 1 (none given)",
    )


def test_lines_say_what_an_overlay_replaced():
    assert override_lines((OVERLAY,)) == ("h100-sxm price: 3 from mine.yaml instead of 2",)
    new = Override(item="x", quantity="q", catalog_value="", overlay_value="1", overlay="o")
    assert override_lines((new,)) == ("x q: 1 from o",)


def test_tables_without_rows_are_not_shown():
    full = Table(title="full", columns=("a",), rows=(("1",),))
    empty = Table(title="empty", columns=("a",), rows=())
    made = result_sheet({}, [empty, full])
    assert [table.title for table in made.tables] == ["full"]


def test_remarks_come_before_assumptions():
    made = result_sheet(
        {}, [], remarks=[("Warnings:", ["hot"])], assumptions=(ASSUMED,), overrides=(OVERLAY,)
    )
    assert [heading for heading, _ in made.remarks] == ["Warnings:", "Assumptions:", "Overlay:"]
    assert made.remarks[0][1] == ("hot",)

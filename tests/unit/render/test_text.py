"""Comments and YAML: what comes from outside stays where it belongs."""

from dataclasses import replace

import pytest
import yaml

from fakes.deployed import deployed, deployed_pool, promise, run_pool
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.render.reasons import commented, head, reasons
from gpuplan.render.text import json_file, without_none, yaml_file, yaml_text


def test_comments_begin_every_line():
    assert commented(["one", "two\nthree"]) == "# one\n# two three\n"


def test_a_file_says_which_plan_it_follows():
    assert "plan 'shop' of 2026-11-16" in head(deployed())[0]


def test_reasons_name_load_fleet_and_latency():
    text = " ".join(reasons(deployed_pool()))
    assert "3.4 requests/s at the peak" in text
    assert "6 x h100-sxm (3 replicas, 1 of them to spare, TP2, fp8)" in text
    assert "tpot p95: 30 ms predicted, 40 ms allowed" in text
    assert "61% at the peak; SLOs hold up to 72%" in text


def test_a_run_is_counted_in_accelerators():
    text = " ".join(reasons(run_pool(PoolLayout(tp=1, pp=1, dp=16), RunSteps())))
    assert "16 x h100-sxm (DP16, bf16)" in text
    assert "deadline: 480.0 h predicted" in text


def test_what_was_not_predicted_is_not_claimed():
    unsaid = replace(promise(), reached_s=None)
    text = " ".join(reasons(deployed_pool(promises=(unsaid,))))
    assert "predicted" not in text


@pytest.mark.parametrize("value", ["yes", "1e3", "null", "a: b", "# no comment", "'quoted'", "0x1"])
def test_text_comes_back_as_text(value):
    assert yaml.safe_load(yaml_text({"key": value}))["key"] == value


def test_scripts_are_blocks():
    assert "key: |" in yaml_text({"key": "one\ntwo\n"})


def test_documents_are_divided():
    file = yaml_file("x.yaml", yaml_text({"a": 1}, ["first"]), yaml_text({"b": 2}))
    assert list(yaml.safe_load_all(file.content)) == [{"a": 1}, {"b": 2}]
    assert file.content.startswith(b"# first\na: 1\n---\n")


def test_shared_values_are_written_twice():
    shared = {"x": 1}
    assert "&id" not in yaml_text({"a": shared, "b": shared})


def test_json_has_no_numbers_that_json_does_not_know():
    with pytest.raises(ValueError, match="JSON"):
        json_file("x.json", {"a": float("nan")})


def test_empty_keys_vanish_at_every_level():
    assert without_none({"a": None, "b": {"c": None, "d": 0}}) == {"b": {"d": 0}}

"""Each rule for models passes the catalog and finds the fault that it is for."""

from dataclasses import replace

import pytest

from gpuplan.catalog.integrity import models as rules
from gpuplan.catalog.models import find_model

LLAMA = find_model("meta-llama/Llama-3.1-8B-Instruct")
GEMMA = find_model("google/gemma-2-9b")


def with_mixer(model, **changes):
    stack = model.main
    groups = tuple(replace(g, mixer=replace(g.mixer, **changes)) for g in stack.groups)
    stacks = tuple(replace(s, groups=groups) if s is stack else s for s in model.stacks)
    return replace(model, stacks=stacks)


def test_the_catalog_passes_and_every_rule_says_how_much_it_looked_at():
    assert rules.check_models() == ()
    looked = rules.looked_at()
    assert len(looked) == len(rules.RULES)
    assert looked["model-params"] >= 100
    assert looked["model-source"] >= 500


def test_an_id_that_leads_to_a_relative_is_found(monkeypatch):
    monkeypatch.setattr(rules, "models_in_catalog", lambda: ("Qwen/Qwen3-8B",))
    assert rules.ids_stand_for_themselves([find_model("Qwen/Qwen3-8B")]).findings == ()
    [finding] = rules.ids_stand_for_themselves([find_model("Qwen/Qwen3-8B-Base")]).findings
    assert "Qwen/Qwen3-8B leads elsewhere" in finding.what


def test_an_alias_of_another_model_is_found(monkeypatch):
    wrong = [{"alias": "sdxl", "id": "stable-diffusion-v1-5/stable-diffusion-v1-5"}]
    monkeypatch.setattr(rules, "packaged_rows", lambda *_: wrong)
    assert "'sdxl' is not" in rules.aliases_lead_to_one([]).findings[0].what


def test_a_count_that_is_not_the_published_one_is_found():
    smaller = replace(LLAMA, name="meta-llama/Meta-Llama-3.1-70B")
    assert rules.counted_as_published([LLAMA]).findings == ()
    [finding] = rules.counted_as_published([smaller]).findings
    assert "published 70,553,706,496" in finding.what


@pytest.mark.parametrize("tokens", [1024, 4095])
def test_a_context_below_the_window_is_found(tokens):
    short = replace(GEMMA, max_context_tokens=tokens)
    assert rules.context_as_published([GEMMA]).findings == ()
    assert "window of 4096" in rules.context_as_published([short]).findings[0].what


def test_a_context_other_than_the_published_one_is_found():
    grok = find_model("xai-org/grok-1")
    assert rules.context_as_published([replace(grok, max_context_tokens=131_072)]).findings


def test_heads_that_do_not_divide_are_found():
    assert rules.heads_divide([LLAMA]).findings == ()
    assert rules.heads_divide([with_mixer(LLAMA, n_kv_heads=7)]).findings


def test_twins_of_another_size_are_found():
    twin = find_model("meta-llama/Meta-Llama-3.1-8B")
    other = replace(find_model("meta-llama/Llama-3.2-3B"), name="someone/Llama-3.1-8B")
    assert rules.twins_agree([LLAMA, twin]).findings == ()
    assert "twin" in rules.twins_agree([LLAMA, other]).findings[0].what


def test_a_model_without_a_source_is_found():
    assert rules.sourced([replace(LLAMA, source="")]).findings

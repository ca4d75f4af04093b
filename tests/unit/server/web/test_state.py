"""Addresses hold the whole state of a page, and say plainly what they cannot hold."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.errors import InputError
from gpuplan.server.web.state import EXAMPLE, sliders, state_of

TREE = {
    "workloads": [
        {
            "demand": {"users": 6000, "active_frac": 0.2},
            "slo": {"ttft_p95_ms": 2000, "e2e_p95_s": 30, "availability_frac": 0.999},
        }
    ]
}


def pairs_of(address):
    return parse_qsl(urlsplit(address).query)


def test_without_an_address_the_example_is_planned():
    assert state_of([]).body()["words"] == EXAMPLE


def test_keys_of_the_scenario_are_set_over_the_words():
    state = state_of([("words", "chat"), ("workloads[0].demand.users", "70"), ("colour", "red")])
    assert state.body()["changes"] == ["workloads[0].demand.users=70"]


def test_a_scenario_comes_before_words():
    body = state_of([("words", "chat"), ("scenario", "name: shop\nworkloads: []")]).body()
    assert body["scenario"] == {"name": "shop", "workloads": []}
    assert "words" not in body


def test_several_values_of_one_key_become_a_list():
    state = state_of([("policy.purchases", "spot"), ("policy.purchases", "reserved")])
    assert state.body()["changes"] == ["policy.purchases=[spot, reserved]"]
    one = state_of([("policy.accelerators.allowed", "H100, H200")])
    assert one.body()["changes"] == ["policy.accelerators.allowed=[H100, H200]"]


def test_a_pin_narrows_the_question_to_one_accelerator_and_precision():
    changes = state_of([("pin", "h100-sxm,fp8")]).body()["changes"]
    assert changes == ["policy.accelerators.allowed=[h100-sxm]", "workloads[0].precision=fp8"]
    assert state_of([]).body(pinned="l4,bf16")["changes"][0].endswith("[l4]")


def test_a_key_can_be_left_out():
    state = state_of([("budget.usd_per_month", "100"), ("policy.survive", "node")])
    assert state.body(without=["budget.usd_per_month"])["changes"] == ["policy.survive=node"]


@given(st.text(min_size=1, max_size=60).map(str.strip).filter(bool), st.floats(0.1, 1e6))
def test_an_address_brings_the_same_state_back(words, power):
    state = state_of([("words", words), ("policy.survive", "node"), ("power_kw", f"{power:g}")])
    assert state_of(pairs_of(state.address())) == state


def test_a_link_may_say_more():
    assert pairs_of(state_of([]).address("/what-if", what_if="a=1"))[-1] == ("what_if", "a=1")


@pytest.mark.parametrize(
    "pairs",
    [
        [("power_kw", "much")],
        [("power_kw", "-3")],
        [("power_kw", "nan")],
        [(f"policy.k{i}", "1") for i in range(60)],
        [("words", "x" * 30_000)],
    ],
)
def test_what_cannot_be_meant_is_refused(pairs):
    with pytest.raises(InputError):
        state_of(pairs)


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "just words", "a: !!python/object:x {}"])
def test_a_text_that_is_no_scenario_is_refused(text):
    with pytest.raises(InputError, match="scenario"):
        state_of([("scenario", text)]).body()


def test_sliders_cover_load_slos_budget_and_power():
    found = sliders(state_of([("power_kw", "9")]), TREE, usd=12_000.0, kw=7.0)
    by_key = {each.key: each for each in found}
    assert by_key["workloads[0].demand.users"].value == 6000
    assert by_key["workloads[0].slo.ttft_p95_ms"].unit == "ms"
    assert by_key["workloads[0].slo.e2e_p95_s"].label == "SLO: E2E p95"
    assert by_key["budget.usd_per_month"].value is None
    assert by_key["power_kw"].value == 9
    assert not any("frac" in each.key for each in found)
    assert all(each.low <= (each.value or each.low) <= each.high for each in found)


@given(st.floats(0.02, 1e9))
def test_any_load_lies_within_its_slider(load):
    tree = {"workloads": [{"demand": {"requests_per_s": load}}]}
    found = sliders(state_of([]), tree, usd=0.0, kw=0.0)[0]
    assert found.low <= found.step * 1.01
    assert found.value <= found.high


def test_a_scenario_without_load_still_has_its_limits():
    keys = [each.key for each in sliders(state_of([]), {}, usd=0.0, kw=0.0)]
    assert keys == ["budget.usd_per_month", "power_kw"]

"""R69 to R82: cost, energy, facility."""

import json

import pytest

from requirements.asking import Ask
from requirements.registry import check

POWER = "check examples/power-shortfall.yaml"


@check("R69", "plan examples/which-gpu.yaml --samples 0")
def why_not_the_biggest_is_answered(ask: Ask) -> None:
    found = ask.plan("cpu-is-enough")
    rows = {one["question"]: one for one in found["explanation"]["why_not"]}
    row = rows["the priciest accelerator, for embeddings"]
    assert row["extra_usd_per_month"] == pytest.approx(292)


@check("R70", "plan examples/which-gpu.yaml --samples 0")
def several_mid_range_gpus_are_weighed_with_failures(ask: Ask) -> None:
    found = ask.plan("which-gpu")
    rows = {one["accelerator"]: one for one in found["comparison"]}
    assert rows["h100-sxm"]["n_accelerators"] == 2  # one loss survived
    assert rows["l40s"]["n_accelerators"] == 4
    assert rows["l4"]["n_accelerators"] == 8
    calm = ask.plan("which-gpu", "policy.survive=none")
    assert calm["plan"]["pools"][0]["n_accelerators"] == 1


@check("R71", "plan examples/burst-to-cloud.yaml --samples 0")
def every_way_to_buy_is_weighed(ask: Ask) -> None:
    found = ask.plan("burst-to-cloud")
    bought = {one["purchase"] for pool in found["plan"]["pools"] for one in pool["purchases"]}
    assert bought == {"owned", "on_demand"}
    # Tokens bought instead: 3.33 requests/s of 2200 and 350 tokens at one's own prices.
    tokens = [{"name": "api", "usd_per_m_input_tokens": 0.5, "usd_per_m_output_tokens": 2.0}]
    priced = ask.plan("chat", f"prices.token_services={json.dumps(tokens)}")
    row = next(one for one in priced["alternatives"] if one["kind"] == "API tokens")
    mean = priced["load"][0]["mean_requests_per_s"] or 10 / 3
    usd = mean * 730 * 3600 * (2200 * 0.5 + 350 * 2.0) / 1e6
    assert row["usd_per_month"] == pytest.approx(usd, rel=0.01)


@check("R71", "plan examples/which-gpu.yaml --samples 0 --set prices.offers[2].purchase=spot")
def a_spot_price_of_ones_own_is_weighed(ask: Ask) -> None:
    """H100 at 0.50 on spot: two of them, one to spare, beside 4 x L40S on demand."""
    spot = ask.plan(
        "which-gpu",
        "prices.offers[2].purchase=spot",
        "policy.purchases=[spot,on_demand]",
        "prices.offers[2].usd_per_accelerator_h=0.5",
    )
    assert spot["plan"]["pools"][0]["accelerator"] == "l40s"
    row = next(one for one in spot["alternatives"] if one["kind"] == "spot")
    assert row["usd_per_month"] == pytest.approx(2 * 0.5 * 730)
    assert row["extra_usd_per_month"] == pytest.approx((2 * 0.5 - 4 * 1.6) * 730)
    assert "reclaimed" in row["remark"]


@check("R71", "plan examples/chat.yaml --samples 0")
def reserved_prices_are_an_alternative(ask: Ask) -> None:
    found = ask.plan("chat")
    why = {one["question"]: one["answer"] for one in found["explanation"]["why_not"]}
    assert "prices.offers" in why["reserved capacity, for chat"]  # no list has one
    rented = ask.plan("chat", "policy.clouds.allowed=[aws]")
    rows = {one["kind"]: one for one in rented["alternatives"]}
    usd = rented["plan"]["cost_usd_per_month"]["value"]
    assert 0.3 * usd < rows["reserved"]["usd_per_month"] < 0.8 * usd
    assert "advertised" in rows["reserved"]["remark"]
    assert "quote" in rows["reserved"]["remark"]
    assert rows["spot"]["usd_per_month"] < usd


@check("R72", "plan examples/burst-to-cloud.yaml --samples 0")
def flexibility_is_priced_as_regret(ask: Ask) -> None:
    why = " ".join(ask.plan("burst-to-cloud")["explanation"]["why"])
    needed = [168] * 16 + [50] * 24 + [20] * 20
    doubled = [168] * 16 + [50] * 64 + [20] * 40  # peaks of 80 and 120, the base stays

    def cost(own: int, load: list[int]) -> float:
        return (own * 1.45 * 168 + 3.0 * sum(load[own:])) * 8760 / 168

    assert "regret of owning 16 is $0/year" in why
    regret = float(why.split("today's peak $")[1].split("/year")[0].replace(",", ""))
    best = min(range(121), key=lambda own: cost(own, doubled))
    assert best == 16
    assert regret == pytest.approx(cost(60, doubled) - cost(16, doubled), abs=1)
    assert cost(60, needed) > cost(16, needed)


@check("R73", "design chat.plan.yaml --statement chat.csv")
def the_statement_adds_up_to_the_cent(ask: Ask) -> None:
    ask.plan("chat")
    found = ask.document("design chat.plan.yaml")["statement"]
    assert sum(found["by_month_cents"]) == found["total_cents"]
    assert sum(line["total_cents"] for line in found["lines"]) == found["total_cents"]
    assert sum(found["by_category_cents"].values()) == found["total_cents"]
    ask.plan("power-shortfall")
    owned = ask.document("design power-shortfall.plan.yaml")["statement"]["by_category_cents"]
    kwh = 4 * 10.2 * 0.7 * 26280 * 1.4
    assert sum(owned.values()) == pytest.approx(kwh * 0.12 * 100, rel=0.01)


@check("R74", POWER)
def power_is_known_at_every_level(ask: Ask) -> None:
    facility = ask.document()["facilities"][0]
    levels = {one["level"]: one for one in facility["levels"]}
    for one in levels.values():
        assert one["idle_w"] < one["typical_w"] <= one["max_w"]
    assert levels["node"]["max_w"] == 10200
    assert facility["rack_usable_w"] == pytest.approx(208 * 60 * 3**0.5 * 0.8, rel=0.001)
    assert facility["ups"]["energy_j"] >= 300 * 40800


@check("R74", POWER)
def the_cap_that_admits_another_node_is_named_with_its_cost(ask: Ask) -> None:
    caps = {one["cap_w"]: one for one in ask.document()["facilities"][0]["caps"]}
    assert caps[450]["accepted"]
    assert not caps[500]["accepted"]
    assert 1 < caps[450]["slowdown"]["low"] < caps[450]["slowdown"]["high"] < 2


@check("R74", POWER)
def the_exact_cap_is_found(ask: Ask) -> None:
    exact = ask.document()["facilities"][0]["largest_cap"]
    usable = 208 * 60 * 3**0.5 * 0.8
    node_w = usable * 0.95 / 2
    assert exact["cap_w"] == pytest.approx(700 - (10200 - node_w) / 8, abs=1.0)
    assert exact["n_machines_per_rack"] == 2
    assert exact["slowdown"]["low"] > 0


@check("R75", POWER)
def heat_in_every_unit(ask: Ask) -> None:
    cooling = ask.document()["facilities"][0]["cooling"]
    assert cooling["heat_w"] == 40800
    assert cooling["btu_per_h"] == pytest.approx(40800 * 3.412142, rel=1e-4)
    assert cooling["tons"] == pytest.approx(cooling["btu_per_h"] / 12000, rel=1e-3)


@check("R75", POWER)
def air_flow_in_cfm_and_units_to_spare(ask: Ask) -> None:
    cooling = ask.document()["facilities"][0]["cooling"]
    assert cooling["cfm"] == pytest.approx(cooling["air_m3_per_s"] * 2118.88, rel=1e-3)
    assert cooling["n_units"] >= 2
    assert (cooling["n_units"] - 1) * cooling["unit_w"] >= 40800


@check("R76", POWER)
def spares_follow_from_failures_and_repair(ask: Ask) -> None:
    spares = ask.document()["spares"][0]
    each_h = 16_384 * 54 * 24 / 419  # of one GPU, by the stops of a published run
    assert spares["mtbf_h"] == pytest.approx(each_h / 8, rel=0.01)
    up = spares["mtbf_h"] / (spares["mtbf_h"] + spares["repair_h"])
    assert spares["machine_availability_frac"] == pytest.approx(up, rel=1e-3)
    assert spares["kept_frac"] >= 0.99
    long = ask.document(POWER + " --what-if build.spares.repair_days=30")["after"]["spares"][0]
    assert long["n_spares"] >= spares["n_spares"]


@check("R77", POWER)
def energy_carbon_and_joules_per_token(ask: Ask) -> None:
    energy = ask.document()["energy"]
    assert energy["kwh_per_year"] == pytest.approx(40.8 * 0.7 * 8760 * 1.4, rel=0.01)
    assert energy["usd_per_year"]["value"] == pytest.approx(energy["kwh_per_year"] * 0.12)
    ask.plan("chat")
    pool = ask.document("design chat.plan.yaml")["pools"][0]
    assert 0.1 < pool["j_per_token"] < 10
    shown = ask.plan("chat")["plan"]
    assert shown["carbon_kg_per_month"] > 0


@check("R78", "plan mixed.yaml --samples 0")
def each_workload_goes_where_it_suits(ask: Ask) -> None:
    def work(name: str, tokens: int) -> dict[str, object]:
        return {
            "name": name,
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "precision": "fp8",
            "demand": {"output_tokens_per_s": tokens},
            "request": {"input_tokens": 1500, "output_tokens": 300},
            "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
            "capacity": [
                {"accelerator": "L4", "output_tokens_per_s": 900},
                {"accelerator": "H100", "output_tokens_per_s": 9000},
            ],
        }

    offers = [
        {"accelerator": "L4", "usd_per_accelerator_h": 0.8},
        {"accelerator": "H100", "usd_per_accelerator_h": 2.95},
    ]
    content = {
        "name": "mixed",
        "workloads": [work("small", 400), work("large", 30000)],
        "policy": {"max_utilization_frac": 0.7, "accelerators": {"allowed": ["L4", "H100"]}},
        "prices": {"offers": offers},
    }
    ask.scenario("mixed.yaml", content)
    pools = {one["workload"]: one for one in ask.document()["plan"]["pools"]}
    assert pools["large"]["accelerator"] == "h100-sxm"
    assert pools["large"]["n_accelerators"] >= 4
    total = ask.document()["plan"]["cost_usd_per_month"]["value"]
    assert total <= (5 * 2.95 + 0.8) * 730 * 1.01


@check("R79", "check examples/system-undersized-supply.yaml")
def an_undersized_supply_is_rejected_before_anything_is_bought(ask: Ask) -> None:
    answer = ask()
    assert answer.code in (3, 4)
    text = answer.out + answer.err
    assert "10.2" in text
    assert "8.6" in text
    plan = ask.document("plan examples/system-undersized-supply.yaml --samples 0")["plan"]
    bought = {one["purchase"] for pool in plan["pools"] for one in pool["purchases"]}
    assert "existing" not in bought  # the servers that cannot be powered are not planned with


@check("R80", POWER + " --checklist checklist.md")
def a_checklist_before_installation_is_written(ask: Ask) -> None:
    assert ask().code in (0, 4)
    text = ask.read("checklist.md")
    assert text.count("- [ ]") >= 8
    assert "10.2 kW" in text or "10,200" in text


@check("R81", POWER)
def units_and_cables_are_counted(ask: Ask) -> None:
    found = ask.document()
    slots = found["facilities"][0]["slots"]
    assert len(slots) == 4
    assert all(one["height_u"] == 8 for one in slots)
    assert all(cable["longest_m"] > 0 for fabric in found["fabrics"] for cable in fabric["cables"])


@check("R81", POWER)
def the_weight_of_a_rack_is_counted(ask: Ask) -> None:
    room = ask.document()["facilities"][0]
    each = room["physical"]["kg_per_machine"]
    assert 100 < each < 200
    assert room["physical"]["kg_per_rack"] == pytest.approx(room["n_machines_per_rack"] * each)


@check("R81", POWER)
def depth_is_checked(ask: Ask) -> None:
    room = ask.document()["facilities"][0]["physical"]
    assert room["depth_mm"] > 800
    assert room["depth_mm_limit"] >= room["depth_mm"]


@check("R82", "plan examples/chat.yaml --samples 0")
def cost_with_energy_and_upkeep_is_the_default_objective(ask: Ask) -> None:
    found = ask.plan("chat")
    assert found["proof"]["objective"] == "cost"
    said = [one for one in found["assumptions"] if "Objective" in one["what"]]
    assert "energy and upkeep" in said[0]["why"]

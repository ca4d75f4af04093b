"""Rent, own or both of a plan's machines: redone here by plain arithmetic, month by month."""

from datetime import date

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError
from gpuplan.pipeline.design import design_plan
from gpuplan.pipeline.plan import plan
from gpuplan.report.system.design import design_sheet
from gpuplan.report.system.ownership import ways_svg

TODAY = date(2026, 11, 1)
HARDWARE, RENT = 300_000.0, 2.95
EXTRAS = {
    "freight_frac": 0.03,
    "tax_frac": 0.2,
    "installation_frac": 0.01,
    "network_gear_frac": 0.1,
    "spares_frac": 0.02,
}
TREE = {
    "version": 1,
    "name": "ways",
    "workloads": [
        {"name": "steady", "kind": "generic", "work": {"accelerators": 16}},
    ],
    "site": {
        "power_kw": 500,
        "pue": 1.4,
        "electricity_usd_per_kwh": 0.12,
        "demand_charge_usd_per_kw_month": 15,
    },
    "policy": {"accelerators": {"allowed": ["H100"]}, "purchases": ["on_demand"]},
    "budget": {
        "horizon_months": 36,
        "discount_rate_frac_per_year": 0.08,
        "depreciation_years": 4,
        "residual_frac": 0.1,
    },
    "prices": {
        "hardware": [{"accelerator": "H100", "usd_per_node": HARDWARE}],
        "offers": [
            {
                "name": "cloud",
                "accelerator": "H100",
                "usd_per_accelerator_h": RENT,
                "accelerators_per_node": 8,
            },
        ],
        "purchase_extras": EXTRAS,
        "support_frac_per_year": 0.04,
        "colocation_usd_per_kw_month": 0,
        "staff_usd_per_year": 5000,
        "licence_usd_per_accelerator_year": 100,
    },
}


@pytest.fixture(scope="module")
def designed():
    answer = plan(PlanRequest(target="tree", today=TODAY, n_samples=0, tree=TREE))
    return design_plan(answer, read_catalog())


def discounted(flow: list[float], yearly: float) -> float:
    return sum(usd / (1 + yearly) ** (month / 12) for month, usd in enumerate(flow))


# 8 boards at 490 W, fans 18 % of it, hosts 20 + 8 x 140 W, supplies lose 6 %.
DRAWN_KW = (8 * 0.490 * 1.18 + 0.020 + 8 * 0.140) * 1.06


# Held for the horizon of 36 of 48 months: three quarters of the way from 100 % to 10 %.
HELD, RESALE = 36, 1 - 0.75 * 0.9


def owned_by_hand() -> list[float]:
    """Two DGX H100: 10.2 kW at most; on average boards at 70 % of 700 W, hosts and fans."""
    n, months = 2, HELD
    goods = 1 + EXTRAS["network_gear_frac"] + EXTRAS["spares_frac"] + EXTRAS["freight_frac"]
    outlay = HARDWARE * (goods * (1 + EXTRAS["tax_frac"]) + EXTRAS["installation_frac"])
    energy = DRAWN_KW * 1.4 * 730 * 0.12
    demand = 10.2 * 1.4 * 15
    support, licence, staff = HARDWARE * 0.04 / 12, 8 * 100 / 12, 5000 / 12
    monthly = energy + demand + support + licence
    flow = [n * outlay] + [n * monthly + staff] * months  # one staff for both
    flow[-1] -= n * HARDWARE * RESALE
    return flow


def rented_by_hand() -> list[float]:
    return [0.0] + [16 * RENT * 730] * HELD


def test_ways_equal_arithmetic_by_hand(designed):
    (found,) = designed.money.rent_or_own
    ways = {way.name: way for way in found.options}
    assert ways["all owned"].n_owned == 2
    assert ways["all rented"].npv_usd == pytest.approx(discounted(rented_by_hand(), 0.08), rel=1e-6)
    assert ways["all owned"].npv_usd == pytest.approx(discounted(owned_by_hand(), 0.08), rel=1e-6)


def test_payback_and_break_even_equal_arithmetic_by_hand(designed):
    (found,) = designed.money.rent_or_own
    own, rent = owned_by_hand(), rented_by_hand()
    saved, total = None, 0.0
    for month, (mine, theirs) in enumerate(zip(own, rent, strict=True)):
        total += theirs - mine
        saved = (month if saved is None else saved) if total >= 0 else None
    back = next(way.payback for way in found.options if way.name == "all owned")
    assert back.simple_month == saved
    assert back.discounted_month >= back.simple_month
    share = discounted(own, 0.08) / discounted(rent, 0.08)
    assert found.break_even.utilization_ratio == pytest.approx(share, rel=1e-6)


def test_payback_has_a_date_and_cost_a_range(designed):
    (found,) = designed.money.rent_or_own
    assert found.calendar(0) == "2026-11"
    assert found.calendar(2) == "2027-01"
    assert found.calendar(26) == "2029-01"
    document = design_sheet(designed).document["ways"][0]["ways"][2]
    month = document["payback"]["simple_month"]
    assert document["payback"]["simple_date"] == found.calendar(month)
    # Nothing here was given as a range.
    assert document["npv_range_usd"]["low"] == pytest.approx(document["npv_usd"])
    assert document["npv_range_usd"]["high"] == pytest.approx(document["npv_usd"])


def test_residual_and_price_ranges_widen_owning_alone():
    hardware = {"low": 250_000, "mid": HARDWARE, "high": 400_000}
    prices = TREE["prices"] | {"hardware": [{"accelerator": "H100", "usd_per_node": hardware}]}
    budget = TREE["budget"] | {"residual_frac": {"low": 0.0, "mid": 0.1, "high": 0.3}}
    tree = {**TREE, "prices": prices, "budget": budget}
    answer = plan(PlanRequest(target="tree", today=TODAY, n_samples=0, tree=tree))
    (found,) = design_plan(answer, read_catalog()).money.rent_or_own
    rented, _, owned = found.npv_usd
    assert rented.low == pytest.approx(rented.high)
    # Dear: 2 × 400,000 with nothing back; by hand as above.
    goods = 1 + EXTRAS["network_gear_frac"] + EXTRAS["spares_frac"] + EXTRAS["freight_frac"]
    factor = goods * (1 + EXTRAS["tax_frac"]) + EXTRAS["installation_frac"]
    support = 0.04 / 12
    flow = owned_by_hand()
    flow[0] = 2 * 400_000 * factor
    flow[-1] += 2 * HARDWARE * RESALE - 2 * 400_000 * 0.25  # nothing is left after 48 months
    flow = [flow[0], *(usd + 2 * (400_000 - HARDWARE) * support for usd in flow[1:])]
    assert owned.high == pytest.approx(discounted(flow, 0.08), rel=1e-6)
    assert owned.low < owned.mid < owned.high


def test_curves_cross_at_the_break_even(designed):
    (found,) = designed.money.rent_or_own
    lines = dict(found.curves)
    for share, own, rent in zip(found.shares, lines["all owned"], lines["all rented"], strict=True):
        assert (own < rent) == (share > found.break_even.utilization_ratio)
    best = zip(lines["own and rent"], lines["all owned"], lines["all rented"], strict=True)
    assert all(both == pytest.approx(min(own, rent)) for both, own, rent in best)


def test_books_hold_the_purchase_once(designed):
    """Trap 34: depreciation stands in place of the cash, and ends at the residual."""
    (found,) = designed.money.rent_or_own
    owned = next(way.statement for way in found.options if way.name == "all owned")
    spread = sum(year.depreciation_cents for year in found.book)
    spent = sum(year.expense_cents for year in found.book)
    assert spread + spent == owned.total_cents
    assert found.book[-1].book_value_cents == pytest.approx(2 * HARDWARE * RESALE * 100, abs=2)


def test_a_run_does_not_need_its_machines_for_ever():
    """Owning for one run pays for idle years; renting pays for the run."""
    tree = {
        **TREE,
        "workloads": [
            {
                "name": "run",
                "kind": "pretraining",
                "model": {"params_b": 8},
                "training": {"tokens": 2e11, "deadline_days": 30, "mfu_frac": 0.4},
            },
        ],
    }
    answer = plan(PlanRequest(target="tree", today=TODAY, n_samples=0, tree=tree))
    made = design_plan(answer, read_catalog())
    (found,) = made.money.rent_or_own
    assert found.used_frac < 0.03
    rented = next(way for way in found.options if way.name == "all rented")
    # The run alone, rented: the plan's own bill.
    assert rented.statement.total_cents == pytest.approx(made.money.plan_total_cents, rel=0.01)
    assert made.money.pools[0].run_usd == pytest.approx(made.money.plan_total_cents / 100)
    assert found.best.n_owned == 0


def test_a_service_and_a_run_have_months_of_their_own():
    """Two machines for 36 months and one for a run of days: each is bought once, and no more."""
    run = {
        "name": "run",
        "kind": "finetuning",
        "model": "meta-llama/Llama-3.1-8B",
        "training": {"method": "full", "tokens": 2.0e10, "deadline_days": 20, "mfu_frac": 0.4},
    }
    policy = {"accelerators": {"allowed": ["H100"]}, "purchases": ["owned"]}
    prices = {key: value for key, value in TREE["prices"].items() if key != "offers"}
    works = [*TREE["workloads"], run]
    tree = {**TREE, "workloads": works, "policy": policy, "prices": prices}
    answer = plan(PlanRequest(target="tree", today=TODAY, n_samples=0, tree=tree))
    made = design_plan(answer, read_catalog())
    assert made.money.difference_cents == 0
    n = {pool.workload: sum(line.n_nodes for line in pool.purchases) for pool in answer.plan.pools}
    found = made.money.statement.cents_by_category
    assert found["hardware"] == pytest.approx(sum(n.values()) * HARDWARE * 100, abs=5)
    assert found["freight"] == pytest.approx(sum(n.values()) * HARDWARE * 3, abs=5)
    # 6 × 8.03e9 × 2e10 flop at 40 % of a dense peak, in hours: days, not years.
    pools = {cost.workload: cost for cost in made.money.pools}
    hours = 6 * 8.03e9 * 2e10 / (0.4 * 989.4e12) / 3600
    # The whole machine is paid for while a part of it works: at most until the deadline.
    assert hours <= pools["run"].n_paid_accelerator_hours <= 20 * 24 * 8
    # What a sale does not give back, and little wear: freight, tax, installation, gear, spares.
    goods = 1 + EXTRAS["network_gear_frac"] + EXTRAS["spares_frac"] + EXTRAS["freight_frac"]
    lost = goods * (1 + EXTRAS["tax_frac"]) + EXTRAS["installation_frac"] - 1
    assert pools["run"].run_usd == pytest.approx(n["run"] * lost * HARDWARE, rel=0.2)
    energy = {g.group.workload: g.carbon.energy.machines_j for g in made.groups if g.carbon}
    assert energy["run"] < 0.05 * energy["steady"]


def test_the_month_statement_equals_orders_times_prices(designed):
    """Nothing of the program's money code: nodes × price × 730 hours, for 36 months."""
    money = designed.money
    each = 2 * 8 * RENT * 730
    assert money.statement.n_months == 36
    for month, cents in enumerate(money.statement.cents_by_month):
        assert cents == pytest.approx(0 if month == 0 else each * 100, abs=1)
    assert money.statement.total_cents == pytest.approx(36 * each * 100, abs=1)
    assert money.npv_usd == pytest.approx(discounted([0.0] + [each] * 36, 0.08), rel=1e-6)


def test_document_tables_and_chart_say_the_same(designed):
    document = design_sheet(designed).document["ways"][0]
    assert {way["way"] for way in document["ways"]} == {"all rented", "own and rent", "all owned"}
    assert document["ways"][2]["by_cause_cents"]["demand charge"] > 0
    titles = [table.title for table in design_sheet(designed).tables]
    assert any("owning pays from" in title for title in titles)
    assert "break-even" in ways_svg(designed)


def test_without_prices_nothing_is_compared_and_that_is_said():
    policy = {"accelerators": {"allowed": ["H20"]}, "purchases": ["on_demand"]}
    offers = [{"name": "c", "accelerator": "H20", "usd_per_accelerator_h": 2.0}]
    tree = {**TREE, "policy": policy, "prices": {"offers": offers}}
    answer = plan(PlanRequest(target="tree", today=TODAY, n_samples=0, tree=tree))
    made = design_plan(answer, read_catalog())
    assert not made.money.rent_or_own
    assert any(f.rule == "price-unknown" for f in made.findings)
    with pytest.raises(InputError):
        ways_svg(made)


def test_staff_of_nodes_that_are_owned_anyway_is_not_counted_again():
    """A base that is owned and a peak that is rented: owning the peak too needs no more staff."""
    bands = [{"accelerators": 16, "hours_per_week": 168}, {"accelerators": 32, "hours_per_week": 9}]
    work = {"name": "teams", "kind": "generic", "work": {"load_duration": bands}}
    policy = {"accelerators": {"allowed": ["H100"]}, "purchases": ["on_demand", "owned"]}
    tree = {**TREE, "workloads": [work], "policy": policy}
    answer = plan(PlanRequest(target="tree", today=TODAY, n_samples=0, tree=tree))
    found = {w.group.is_own: w for w in design_plan(answer, read_catalog()).money.rent_or_own}
    staff = {
        is_own: "staff" in each.options[-1].statement.cents_by_category
        for is_own, each in found.items()
    }
    assert staff == {True: True, False: False}

"""A plan with everything around it: the same cents, parts held to what machines have, files."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fakes.plans import answer as fake_answer
from fakes.plans import bill, chosen
from gpuplan import api
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.offers import read_offers
from gpuplan.cli.app import app
from gpuplan.design.hosts import allocatable_bytes, allocatable_cores
from gpuplan.domain.plan.bill import CashLine
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InfeasibleError, InputError, ViolationError
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.pipeline.design import design_plan
from gpuplan.pipeline.plan import plan
from gpuplan.report.system.design import design_sheet
from gpuplan.report.system.files import statement_csv
from gpuplan.studies.whole_design.assemble import refuse_design
from gpuplan.studies.whole_design.statement import CATEGORIES, by_month, statement_of_plan
from gpuplan.studies.whole_design.unit_costs import paid_hours, pool_lines
from gpuplan.units import GB, GIB, MONTH
from shared_data import ROOT

TREE = {
    "version": 1,
    "name": "racks of one's own",
    "workloads": [
        {
            "name": "assistant",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "precision": "fp8",
            "demand": {"output_tokens_per_s": 400000},
            "request": {"input_tokens": 1500, "output_tokens": 300},
            "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
            "capacity": [{"accelerator": "H100", "output_tokens_per_s": 9000}],
        }
    ],
    "site": {
        "racks": 8,
        "rack": {
            "units_u": 42,
            "circuit": {"volts": 415, "amps": 60, "phases": 3, "feeds": "A+B", "derate_frac": 0.8},
        },
        "cooling": "air",
        "pue": 1.4,
        "region": "NLD",
        "electricity_usd_per_kwh": 0.12,
    },
    "policy": {
        "accelerators": {"allowed": ["H100"]},
        "purchases": ["owned"],
        "max_utilization_frac": 0.7,
    },
    "budget": {"horizon_months": 36, "discount_rate_frac_per_year": 0.08},
    "prices": {
        "hardware": [{"accelerator": "H100", "usd_per_node": 280000}],
        "token_services": [
            {"name": "api", "usd_per_m_input_tokens": 0.1, "usd_per_m_output_tokens": 0.4}
        ],
    },
}
TODAY = date(2026, 11, 1)


def made(tree, name="tree"):
    return plan(PlanRequest(target=name, today=TODAY, n_samples=0, tree=tree))


@pytest.fixture(scope="module")
def catalog():
    return read_catalog()


@pytest.fixture(scope="module")
def bought_plan():
    return made(TREE)


@pytest.fixture(scope="module")
def bought(bought_plan, catalog):
    return design_plan(bought_plan, catalog)


@pytest.fixture(scope="module")
def rented_plan():
    offers = [{"accelerator": "H100", "usd_per_accelerator_h": 2.95}]
    policy = {**TREE["policy"], "purchases": ["on_demand"]}
    return made({**TREE, "policy": policy, "prices": {**TREE["prices"], "offers": offers}})


@pytest.fixture(scope="module")
def rented(rented_plan, catalog):
    return design_plan(rented_plan, catalog)


@pytest.fixture(scope="module")
def mixed_plan():
    target = str(ROOT / "examples" / "burst-to-cloud.yaml")
    return plan(PlanRequest(target=target, today=TODAY, n_samples=0))


@pytest.mark.parametrize("name", ["bought_plan", "rented_plan", "mixed_plan"])
def test_statement_is_the_plan_to_the_cent(name, request, catalog):
    answer = request.getfixturevalue(name)
    money = design_plan(answer, catalog).money
    assert money.difference_cents == 0
    n_months = answer.plan.span_s / MONTH
    found = money.statement.cents_by_category
    for line in answer.plan.cost_lines:
        total = found[CATEGORIES[line.what]]
        assert total / 100 == pytest.approx(line.usd_per_month * n_months, abs=0.01)
    assert money.npv_usd == pytest.approx(answer.plan.bill.present_value_usd, abs=0.5)


def test_outlay_by_cause_is_what_hardware_and_its_extras_cost(bought, bought_plan):
    n_nodes = sum(line.n_nodes for line in bought_plan.plan.pools[0].purchases)
    found = bought.money.statement.cents_by_category
    assert found["hardware"] == n_nodes * 28_000_000
    assert found["network"] == pytest.approx(0.12 * found["hardware"], abs=1)
    assert bought.money.statement.cents_by_month[0] / 100 == bought_plan.plan.once_usd
    assert any(note.change.endswith("network_gear_frac") for note in bought.assumptions)


def test_present_value_is_each_month_discounted(bought):
    by_month = bought.money.statement.cents_by_month
    worth = sum(cents / 1.08 ** (month / 12) for month, cents in enumerate(by_month)) / 100
    assert bought.money.npv_usd == pytest.approx(worth)
    assert worth != pytest.approx(sum(by_month) / 100, rel=0.01)


def test_units_of_a_rented_pool(rented, rented_plan):
    cost, busy = rented.money.pools[0], rented_plan.plan.pools[0].use.mean_frac
    assert cost.usd_per_paid_h == pytest.approx(2.95)
    assert cost.usd_per_used_h == pytest.approx(2.95 / busy)
    n_requests = 400_000 / 300 * rented_plan.plan.span_s
    parts = {part.kind: part for part in cost.tokens.parts}
    assert parts["input"].n_tokens == pytest.approx(1500 * n_requests)
    assert sum(part.cost_cents for part in cost.tokens.parts) == cost.total_cents
    assert parts["output"].usd_per_token == pytest.approx(4 * parts["input"].usd_per_token)
    service = n_requests * (1500 * 0.1 + 300 * 0.4) / 1e6
    assert cost.services == (("api", pytest.approx(service * 100, rel=1e-9)),)


def test_tokens_of_a_pool_that_was_sized_cost_by_the_time_they_take(catalog):
    base = fake_answer()
    tree = {
        "version": 1,
        "name": "chat",
        "workloads": [
            {
                "name": "chat",
                "kind": "online_inference",
                "model": "meta-llama/Llama-3.3-70B-Instruct",
                "demand": {"requests_per_s": 4.0},
                "slo": {"ttft_p95_ms": 2000},
                "request": {"input_tokens": 2000, "output_tokens": 200, "prefix_hit_frac": 0.5},
            }
        ],
    }
    load = replace(base.load[0], mean_requests_per_s=4.0, model=tree["workloads"][0]["model"])
    origin = replace(base.provenance, scenario=tree)
    pool = replace(
        base.plan.pools[0],
        purchases=tuple(
            replace(line, region="", cloud="") for line in base.plan.pools[0].purchases
        ),
    )
    chosen_plan = replace(base.plan, pools=(pool,))
    answer = replace(base, load=(load,), provenance=origin, plan=chosen_plan)
    (cost,) = design_plan(answer, catalog).money.pools
    parts = {part.kind: part for part in cost.tokens.parts}
    assert cost.tokens.rule == "accelerator time"
    assert sum(part.cost_cents for part in cost.tokens.parts) == cost.total_cents
    assert parts["cached"].n_tokens == parts["input"].n_tokens
    assert parts["cached"].cost_cents == 0
    assert parts["output"].usd_per_token > 3 * parts["input"].usd_per_token


def test_buying_what_is_rented(rented, bought):
    (found,) = rented.money.own_instead
    own = found.own_usd_per_accelerator_h.mid
    assert found.best.break_even_frac == pytest.approx(own / 2.95)
    assert found.best.n_owned == found.group.n_nodes  # paid for all hours
    assert bought.money.own_instead == ()


def test_owning_pays_from_the_same_utilization_in_the_plan_and_its_design(mixed_plan, catalog):
    """An hour of one's own at $1.45 and a rented one at $3.00: 48.3 %, wherever it is told."""
    money = design_plan(mixed_plan, catalog).money
    (found,) = money.own_instead
    assert found.best.break_even_frac == pytest.approx(1.45 / 3.0)
    assert any(x.at == "48.3% of hours" for x in mixed_plan.explanation.crossovers)
    assert money.rent_or_own == ()  # no price of hardware is known, so none is assumed


def test_energy_and_carbon_are_the_plans(bought, bought_plan):
    n_months = bought_plan.plan.span_s / MONTH
    (account,) = [group.carbon for group in bought.groups]
    assert account.energy.machines_j == pytest.approx(
        bought_plan.plan.energy_j_per_month * n_months
    )
    assert account.energy.facility_j == pytest.approx(1.4 * account.energy.machines_j)
    found = account.operational_of("location", "average")
    assert found.emitted_kg == pytest.approx(bought_plan.plan.carbon_kg_per_month * n_months)
    assert not any(note.change == "site.pue" for note in bought.assumptions)


def test_own_machines_get_a_place_a_network_and_spares(bought):
    (group,) = bought.groups
    assert group.facility.n_nodes == group.group.n_nodes
    assert group.facility.n_racks * 3 >= group.group.n_nodes  # three machines of 10 kW a rack
    compute = next(network for network in group.networks if network.purpose == "compute")
    assert compute.counts.n_node_cables == 8 * group.group.n_nodes
    assert group.spares.n_spares >= 1
    load = next(line for line in group.hosts if line.part == "model load")
    assert load.n_needed * GB * 60 == pytest.approx(8.03e9, rel=0.01)


def with_offer(answer, **changes):
    pool = answer.plan.pools[0]
    line = replace(pool.purchases[0], **changes)
    pools = (replace(pool, purchases=(line, *pool.purchases[1:])),)
    return replace(answer, plan=replace(answer.plan, pools=pools))


def test_rented_hosts_are_the_clouds(rented_plan, catalog):
    shape = next(
        offer.shape
        for offer in read_offers()
        if offer.accelerator == "h100-sxm" and offer.shape.ram_bytes and offer.shape.n_vcpu
    )
    answer = with_offer(rented_plan, offer=shape.name, cloud=shape.cloud)
    (group,) = design_plan(answer, catalog).groups
    parts = {line.part: line for line in group.hosts}
    assert parts["CPU"].n_given == pytest.approx(allocatable_cores(shape.n_vcpu / 2))
    assert parts["memory"].n_given == pytest.approx(allocatable_bytes(shape.ram_bytes) / GIB)
    assert group.facility is None
    assert group.networks == ()
    assert group.spares is None


def test_what_a_seller_does_not_publish_stays_unknown(rented_plan, catalog):
    answer = with_offer(rented_plan, n_accelerators_per_node=8, n_nodes=8)
    (group,) = design_plan(answer, catalog).groups
    assert {line.part: line.n_given for line in group.hosts} == {
        "CPU": None,
        "memory": None,
        "model load": None,
    }


def test_an_undersized_supply_is_refused(bought_plan, catalog):
    circuit = {**TREE["site"]["rack"]["circuit"], "volts": 208, "amps": 20}
    tree = {**TREE, "site": {**TREE["site"], "rack": {"circuit": circuit}}}
    origin = replace(bought_plan.provenance, scenario=tree)
    found = design_plan(replace(bought_plan, provenance=origin), catalog)
    assert not found.is_ok
    with pytest.raises(ViolationError):
        refuse_design(found)


def test_a_plan_without_a_fleet_is_refused(bought_plan, catalog):
    with pytest.raises(InfeasibleError):
        design_plan(replace(bought_plan, plan=None), catalog)


def test_a_pool_on_machines_of_another_says_so(mixed_plan, catalog):
    (pool,) = mixed_plan.plan.pools
    second = replace(pool, workload="guests", purchases=())
    answer = replace(mixed_plan, plan=replace(mixed_plan.plan, pools=(pool, second)))
    found = design_plan(answer, catalog)
    assert [f.where for f in found.findings if f.rule == "shared"] == ["guests"]
    assert found.money.pools[1].usd_per_paid_h is None
    assert found.money.difference_cents == 0


def test_an_unknown_cause_of_cost_is_refused(bought_plan, catalog):
    plan = bought_plan.plan
    flow = (replace(plan.bill.cash_flow[0], what="magic"),)
    strange = replace(plan, bill=replace(plan.bill, cash_flow=flow))
    with pytest.raises(InputError, match="magic"):
        design_plan(replace(bought_plan, plan=strange), catalog)


SCENARIO = scenario_from_dict(TREE, name="tree")
SUMS = st.tuples(
    st.sampled_from(["hardware", "rent", "energy", "residual"]),
    st.floats(0.0, 1.0),
    st.one_of(st.just(0.0), st.floats(0.001, 1.0)),
    st.integers(-10_000_000, 10_000_000),
)


@given(months=st.floats(0.01, 60.0), sums=st.lists(SUMS, min_size=1, max_size=6))
def test_every_cent_of_any_plan_is_in_the_statement_once(months, sums):
    span_s = months * MONTH
    flow = tuple(
        CashLine(
            what=what, workload="chat", name="node", source="", start_s=start * span_s,
            span_s=length * (1 - start) * span_s, usd=cents / 100,
        )
        for what, start, length, cents in sums
    )  # fmt: skip
    base = replace(chosen(), bill=replace(bill(1.0), span_s=span_s, cash_flow=flow))
    found = statement_of_plan(fake_answer(plan=base), base, SCENARIO)
    assert found.total_cents == sum(found.cents_by_month) == sum(cents for *_, cents in sums)
    assert all(len(line.cents) == found.n_months + 1 for line in found.lines)
    assert found.n_months - 1 < months * (1 + 1e-9)
    assert found.n_months >= months * (1 - 1e-8)


def test_sums_fall_in_the_months_in_which_they_are_paid():
    def line(start, length, usd):
        return CashLine(
            what="rent", workload="w", name="n", source="", start_s=start * MONTH,
            span_s=length * MONTH, usd=usd,
        )  # fmt: skip

    assert by_month(line(0, 0, 5.0), 3) == (500, 0, 0, 0)
    assert by_month(line(2, 0, 5.0), 3) == (0, 0, 500, 0)
    assert by_month(line(0, 3, 3.0), 3) == (0, 100, 100, 100)
    assert by_month(line(1, 1.5, 3.0), 3) == (0, 0, 200, 100)


def test_a_file_that_dates_no_sum_is_read_evenly_and_says_so():
    plan = replace(chosen(), bill=replace(bill(100.0), cash_flow=()))
    found = statement_of_plan(fake_answer(plan=plan), plan, SCENARIO)
    assert found.cents_by_month == (0, *[10_000] * 36)
    assert any(note.what == "costs by month" for note in found.assumptions)


def test_files_and_document(bought, tmp_path, bought_plan):
    path = tmp_path / "plan.yaml"
    path.write_text(api.plan_text(bought_plan))
    names = ("bill.csv", "fabric.svg", "racks.svg", "todo.md")
    bill, fabric, racks, todo = (tmp_path / name for name in names)
    done = CliRunner().invoke(
        app,
        [
            "design",
            str(path),
            "--json",
            "--statement",
            str(bill),
            "--fabric",
            str(fabric),
            "--racks",
            str(racks),
            "--checklist",
            str(todo),
        ],
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document == json.loads(json.dumps(design_sheet(bought).document))
    assert document["difference_cents"] == 0
    assert ET.parse(fabric).getroot().tag.endswith("svg")
    assert ET.parse(racks).getroot().tag.endswith("svg")
    assert todo.read_text().startswith("# Before installation")
    assert bill.read_text() == statement_csv(bought)


def test_statement_file_adds_up(bought):
    rows = list(csv.DictReader(io.StringIO(statement_csv(bought))))
    last = rows.pop()
    for column in ("month 0", "month 17", "month 36", "all"):
        total = sum(round(float(row[column]) * 100) for row in rows)
        assert total == round(float(last[column]) * 100)
    assert round(float(last["all"]) * 100) == bought.money.plan_total_cents


def test_a_cloud_has_no_racks_to_draw(rented):
    for text_of in (api.design_rack_svg, api.design_fabric_svg, api.design_checklist):
        with pytest.raises(InputError):
            text_of(rented)


# --- teams and spot -----------------------------------------------------------------------------


def with_team(answer, *teams):
    """The plan's pool once for each team or None, as workloads of their own."""
    work = answer.provenance.scenario["workloads"][0]
    pool = answer.plan.pools[0]
    names = [f"{work['name']}-{index}" for index in range(len(teams))]
    works = [
        {**work, "name": name} | ({"team": team} if team else {})
        for name, team in zip(names, teams, strict=True)
    ]
    scenario = {
        **answer.provenance.scenario,
        "workloads": works,
        "teams": [{"name": team} for team in dict.fromkeys(t for t in teams if t)],
    }
    pools = tuple(replace(pool, workload=name) for name in names)
    bill = answer.plan.bill
    flow = tuple(replace(line, workload=name) for name in names for line in bill.cash_flow)
    return replace(
        answer,
        provenance=replace(answer.provenance, scenario=scenario),
        plan=replace(answer.plan, pools=pools, bill=replace(bill, cash_flow=flow)),
    )


def test_teams_pay_for_their_pools_idle_hours_and_their_share_of_the_rest(rented_plan, catalog):
    """Two equal pools of one team, one of another, one of nobody: 2/3 and 1/3 of the last."""
    answer = with_team(rented_plan, "search", "search", "vision", None)
    money = design_plan(answer, catalog).money
    each = money.pools[0].total_cents
    busy = answer.plan.pools[0].use.mean_frac
    search, vision = money.teams
    assert (search.team, vision.team) == ("search", "vision")
    assert search.total_cents + vision.total_cents == 4 * each
    assert search.used_cents == pytest.approx(2 * each * busy, abs=1)
    assert search.idle_cents == pytest.approx(2 * each * (1 - busy), abs=1)
    assert search.shared_cents == pytest.approx(each * 2 / 3, abs=1)
    assert vision.shared_cents == pytest.approx(each / 3, abs=1)
    [shown] = [t for t in design_sheet(design_plan(answer, catalog)).tables if "team" in t.title]
    assert [row[0] for row in shown.rows] == ["search", "vision"]


def test_without_teams_no_bill_is_split(rented):
    assert rented.money.teams == ()
    assert design_sheet(rented).document["teams"] == []


def on_spot(answer, availability):
    pool = answer.plan.pools[0]
    line = pool.purchases[0]
    spot = replace(line, purchase="spot", offer="my spot")
    tree = answer.provenance.scenario
    offer = {
        "name": "my spot",
        "accelerator": "H100",
        "usd_per_accelerator_h": 2.95,
        "purchase": "spot",
        "availability": availability,
    }
    policy = {**tree["policy"], "purchases": ["spot"]}
    scenario = {**tree, "policy": policy, "prices": {**tree["prices"], "offers": [offer]}}
    plan = replace(answer.plan, pools=(replace(pool, purchases=(spot,)),))
    return replace(answer, plan=plan, provenance=replace(answer.provenance, scenario=scenario))


def test_spot_is_shown_with_what_interruptions_cost(rented_plan, catalog):
    """14 interruptions a week, six minutes of cold start each: 84 of 10,080 minutes are lost."""
    answer = on_spot(rented_plan, {"interruptions_per_week": 14, "cold_start_min": 6})
    group = design_plan(answer, catalog).groups[0]
    price = group.group.price_usd_per_node_h
    assert group.group.spot_usd_per_useful_node_h.mid == pytest.approx(price / (1 - 84 / 10_080))
    assert any("interruption" in note.what for note in group.assumptions)
    document = design_sheet(design_plan(answer, catalog)).document
    assert document["groups"][0]["spot_usd_per_useful_node_h"]["value"] > price
    sheet = design_sheet(design_plan(answer, catalog))
    [shown] = [t for t in sheet.tables if t.title == "Spot price with interruptions"]
    assert shown.rows[0][1:] == (f"{price:,.2f}", f"{price / (1 - 84 / 10_080):,.2f}")


def test_unknown_interruptions_are_said(rented_plan, catalog):
    group = design_plan(on_spot(rented_plan, {}), catalog).groups[0]
    assert group.group.spot_usd_per_useful_node_h is None
    assert "spot-interruptions-unknown" in {finding.rule for finding in group.findings}


def test_two_pools_of_one_workload_pay_each_for_their_own_nodes():
    base = chosen()
    own = replace(base.pools[0].purchases[0], offer="mine", purchase="existing")
    pools = (base.pools[0], replace(base.pools[0], purchases=(own,)))
    [line] = base.bill.cash_flow
    flow = (line, replace(line, name="mine", usd=100.0), replace(line, name="site", usd=7.0))
    plan = replace(base, pools=pools, bill=replace(base.bill, cash_flow=flow))
    first, second = ({x.name for x in pool_lines(plan, pool)} for pool in plan.pools)
    assert (first, second) == ({line.name, "site"}, {"mine"})
    hours = [paid_hours(plan, pool_lines(plan, pool)) for pool in plan.pools]
    assert hours == pytest.approx([3 * 2 * 36 * 730.0] * 2)

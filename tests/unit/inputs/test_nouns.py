"""Keys become fields of nouns in base units: by name, by unit, by declaration; none is lost."""

import json
from typing import get_args

import pytest

from fakes.scenarios import read_scenario_text
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import BuildRules
from gpuplan.domain.scenario.site import OwnedNodes, Site
from gpuplan.domain.scenario.terms import Policy, Prices
from gpuplan.domain.simulation.fleet_file import FleetRequest
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.inputs.schema.build import BuildSpec
from gpuplan.inputs.schema.fleet import FleetSpec
from gpuplan.inputs.schema.keys import Strict, key
from gpuplan.inputs.schema.nouns import noun_of
from gpuplan.inputs.schema.places import walk_models
from gpuplan.inputs.schema.scenario import OwnedSpec, ScenarioSpec, SiteSpec
from gpuplan.inputs.schema.terms import PolicySpec, PricesSpec
from gpuplan.inputs.schema.units import UNITS, field_names, unit_of
from unit.inputs.scenarios import CHAT, changed


@pytest.mark.parametrize(
    ("name", "unit", "field"),
    [
        ("power_kw", "kW", "power_w"),
        ("accelerator_cap_w", "watts", "accelerator_cap_w"),
        ("deadline_days", "days", "deadline_s"),
        ("interval_min", "minutes", "interval_s"),
        ("nic_gbit_per_s", "Gbit per second", "nic_bytes_per_s"),
        ("write_gb_per_s", "GB (1e9 bytes) per second", "write_bytes_per_s"),
        ("electricity_usd_per_kwh", "USD per kWh", "electricity_usd_per_j"),
        ("requests_per_s", "requests per second", "requests_per_s"),
        ("support_frac_per_year", "fraction per year", "support_frac_per_year"),
        ("nodes", "nodes", "nodes"),
        ("driver", "", "driver"),
    ],
)
def test_a_key_ends_in_its_unit(name: str, unit: str, field: str) -> None:
    assert unit_of(name) == unit
    assert field_names(name, unit)[0] == field


def test_a_site_by_hand() -> None:
    spec = SiteSpec.model_validate(
        {
            "power_kw": 500,
            "power_scope": "facility",
            "racks": 4,
            "rack": {
                "units_u": 42,
                "circuit": {"volts": 400, "amps": 32, "phases": 3, "feeds": "A+B"},
            },
            "pue": 1.4,
            "electricity_usd_per_kwh": {"low": 0.036, "mid": 0.072, "high": 0.36},
            "carbon_g_per_kwh": 360,
            "network": {"kind": "efa", "nics_per_node": 2, "nic_gbit_per_s": 400},
        }
    )
    site = noun_of(spec, Site)
    assert (site.power_w, site.is_facility_power, site.n_racks) == (500e3, True, 4)
    assert site.rack is not None
    assert site.rack.circuit is not None
    assert (site.rack.n_units, site.rack.circuit.n_feeds) == (42, 2)
    # 400 V x 32 A x sqrt(3) x 80 %, one feed
    assert site.rack.circuit.usable_w == pytest.approx(17736, rel=1e-4)
    assert site.electricity_usd_per_j is not None
    assert site.electricity_usd_per_j.mid == pytest.approx(2e-8)
    assert site.carbon_kg_per_j == pytest.approx(1e-7)
    assert site.network is not None
    assert (site.network.n_nics_per_node, site.network.nic_bytes_per_s) == (2, 50e9)


def test_what_is_left_out_is_left_to_the_noun() -> None:
    owned = {"accelerator": "H100", "nodes": 2, "accelerators_per_node": 8}
    assert noun_of(OwnedSpec.model_validate(owned), OwnedNodes) == OwnedNodes(
        accelerator="H100", n_nodes=2, n_accelerators_per_node=8
    )
    rules = noun_of(BuildSpec.model_validate({"room": {"ups_minutes": 10}}), BuildRules)
    assert rules.room.ups_bridge_s == 600
    assert rules.hosts == BuildRules().hosts


def test_dots_and_stars_regroup_keys() -> None:
    policy = PolicySpec.model_validate({"survive": "rack", "survive_count": 2})
    made = noun_of(policy, Policy, precisions=(), purchases=())
    assert (made.resilience.survive, made.resilience.n_failures) == ("rack", 2)
    fleet = {"pools": [{"name": "a", "replicas": 3, "tp": 4, "lora": {"rank": 8}}]}
    pool = noun_of(FleetSpec.model_validate(fleet), FleetRequest, shares_frac=()).pools[0]
    assert (pool.size.n_first, pool.replica.tp, pool.replica.ep) == (3, 4, 1)
    assert pool.replica.adapters is not None
    assert pool.replica.adapters.rank == 8
    scenario = scenario_from_dict(
        changed(
            {
                "prices.offers": [
                    {
                        "accelerator": "H100",
                        "usd_per_node_h": 20,
                        "purchase": "reserved",
                        "term_months": 12,
                        "availability": {"max_nodes": 5, "cold_start_min": 2},
                    }
                ]
            }
        )
    )
    offer = scenario.prices.offers[0]
    assert (offer.n_nodes_max, offer.term_s) == (5, 365 * 86400)
    assert offer.cold_start_s == Range(low=120, mid=120, high=120)


def test_own_fields_stand_in_place_of_keys() -> None:
    prices = PricesSpec.model_validate({"offers": [{"accelerator": "H100", "usd_per_node_h": 1}]})
    assert noun_of(prices, Prices, offers=()) == Prices()


def test_a_key_without_a_field_is_a_defect_and_not_dropped() -> None:
    class OddSpec(Strict):
        """A mapping with a key that no rack has."""

        colour: str = key("Colour of the rack")

    with pytest.raises(TypeError, match="no field for the key colour"):
        noun_of(OddSpec(colour="red"), Site)


@pytest.mark.parametrize("root", [ScenarioSpec, FleetSpec])
def test_units_of_the_formats_are_known(root: type[Strict]) -> None:
    """A converted suffix with an unknown unit would stay in the unit of the file."""
    human = ("_ms", "_min", "_days", "_weeks", "_months", "_years", "_kw", "_kb", "_tb", "_gib")
    for place, model in walk_models(root):
        for name, field in model.model_fields.items():
            extra = field.json_schema_extra
            if name.endswith(human) and "usd" not in name:
                assert isinstance(extra, dict), f"{place}.{name}"
                assert UNITS[str(extra["x-unit"])].factor != 1, f"{place}.{name}"


def test_no_two_units_share_an_ending() -> None:
    endings = [unit.suffix for unit in UNITS.values() if unit.suffix]
    assert len(set(endings)) == len(endings)


def test_a_scenario_of_python_is_that_of_the_file() -> None:
    assert scenario_from_dict(CHAT) == read_scenario_text(json.dumps(CHAT))
    with pytest.raises(InputError) as caught:
        scenario_from_dict(changed({"policy.survive": "nods"}), name="mine")
    wanted = "mine: policy.survive: unknown value 'nods'; did you mean 'node'?"
    assert [str(problem) for problem in caught.value.problems] == [wanted]


def test_choices_with_a_meaning_name_all_of_them() -> None:
    for root in (ScenarioSpec, FleetSpec):
        for place, model in walk_models(root):
            for name, field in model.model_fields.items():
                extra = field.json_schema_extra
                if isinstance(extra, dict) and "x-means" in extra:
                    assert set(get_args(field.annotation)) == set(extra["x-means"]), place + name  # type: ignore[arg-type]

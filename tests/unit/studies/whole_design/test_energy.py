"""Work that may wait runs in clean hours: by hand for one day."""

from datetime import date

import pytest
import yaml

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.system.designed import ServerGroup
from gpuplan.pipeline.design import design_plan
from gpuplan.pipeline.plan import plan
from gpuplan.report.system.design import design_sheet
from gpuplan.studies.whole_design.assemble import is_deferrable, shift_of
from gpuplan.units import GRAM, HOUR, KWH

CATALOG = read_catalog()
SUNNY = [500.0] * 8 + [100.0] * 8 + [500.0] * 8


def tree(**more) -> dict:
    return {
        "version": 1,
        "name": "may wait",
        "workloads": [
            {
                "name": "documents",
                "kind": "batch_inference",
                "model": "Qwen/Qwen3-8B",
                "batch": {"docs_per_day": 200000, "deadline_h": 24},
                "request": {"input_tokens": 1500, "output_tokens": 100},
                "capacity": [{"accelerator": "H100", "output_tokens_per_s": 700}],
            },
        ],
        "site": {"region": "NLD", "pue": 1.25, "electricity_usd_per_kwh": 0.12},
        "policy": {"accelerators": {"allowed": ["H100"]}, "purchases": ["on_demand"]},
        "prices": {"offers": [{"name": "c", "accelerator": "H100", "usd_per_accelerator_h": 2.5}]},
        **more,
    }


def designed(**more):
    answer = plan(
        PlanRequest(target="tree", today=date(2026, 11, 1), n_samples=0, tree=tree(**more))
    )
    return design_plan(answer, CATALOG)


def test_a_day_by_hand():
    """4 kWh of one card's machine, which draws less than 8 kWh in 8 hours and more than 4: 2 kg
    from midnight on, 0.4 kg in the sun."""
    group = ServerGroup(
        workload="w",
        server="m",
        accelerator="h100-sxm",
        purchase="on_demand",
        n_nodes=1,
        n_accelerators_per_node=1,
        paid_frac=1.0,
        price_usd_per_node_h=2.5,
    )
    hourly = tuple(g * GRAM / KWH for g in SUNNY)
    day = shift_of(group, 4 * KWH, hourly=hourly, catalog=CATALOG, pue_ratio=1.25)
    assert day.at_once_kg == pytest.approx(4 * 0.5, rel=1e-6)
    assert day.shifted_kg == pytest.approx(4 * 0.1, rel=1e-6)
    assert day.saved_frac == pytest.approx(0.8)
    assert float(day.power_w.sum()) * HOUR == pytest.approx(4 * KWH)
    assert all(power == 0 for hour, power in enumerate(day.power_w) if not 8 <= hour < 16)


def test_a_plan_says_what_waiting_saves():
    found = designed(build={"footprint": {"hourly_g_per_kwh": SUNNY}})
    shift = found.groups[0].shift
    assert shift is not None
    assert shift.shifted_kg <= shift.at_once_kg * (1 + 1e-9)
    energy = found.groups[0].carbon.energy.facility_j
    months = 36
    day_kwh = energy / KWH / (months * 730 / 24)
    # Between all of it in the sun and all of it in the dark.
    assert day_kwh * 0.1 <= shift.shifted_kg * (1 + 1e-6)
    assert shift.shifted_kg <= day_kwh * 0.5
    assert design_sheet(found).document["groups"][0]["shift"]["saved_frac"] == shift.saved_frac
    assert any("deferrable work" in table.title for table in design_sheet(found).tables)


def test_without_hours_it_says_what_is_missing():
    found = designed()
    assert found.groups[0].shift is None
    assert any(f.rule == "carbon-by-hour" for f in found.findings)


@pytest.mark.parametrize(
    ("deadline_h", "priority", "waits"), [(24, 0, True), (2, 0, False), (2, -1, True)]
)
def test_what_is_due_soon_does_not_wait_unless_all_else_goes_first(deadline_h, priority, waits):
    data = tree()
    data["workloads"][0]["batch"]["deadline_h"] = deadline_h
    data["workloads"][0]["priority"] = priority
    assert is_deferrable(read_scenario_text(yaml.safe_dump(data)).workloads[0]) == waits

"""Design: a plan file -> groups of servers, energy, money, and every finding around them."""

from dataclasses import replace
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.system.designed import DesignedPlan
from gpuplan.inputs.plan_file import read_plan
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.whole_design.assemble import (
    chosen_plan,
    designed_plan,
    materials_of,
    money_of,
    software_of,
    with_energy,
)
from gpuplan.studies.whole_design.groups import design_group, planned_servers


def design(path: Path) -> DesignedPlan:
    """Hosts, storage, network, site, spares, money and carbon of a plan file."""
    return design_plan(read_plan(path), read_catalog())


def design_plan(answer: Answer, catalog: Catalog) -> DesignedPlan:
    """The design around a plan that is read already."""
    plan = chosen_plan(answer)
    scenario = scenario_from_dict(answer.provenance.scenario, name=answer.name)
    servers = planned_servers(plan.pools, scenario, catalog)
    designed = [design_group(one, scenario) for one in servers]
    groups = with_energy(designed, plan, scenario, catalog)
    money, remarks = money_of(answer, groups, scenario, catalog)
    whole = designed_plan(answer, groups, scenario, money=money, remarks=remarks)
    stacks = tuple(software_of(plan.pools, catalog))
    return replace(whole, materials=tuple(materials_of(groups)), software=stacks)

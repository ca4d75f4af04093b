"""Check: a described system -> workloads, surroundings, alternatives, and every finding."""

from collections.abc import Sequence
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.system.check import SystemCheck
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.system_check.judge import (
    alternatives_to,
    judge_whole,
    judge_workload,
    require_servers,
    system_check,
)
from gpuplan.studies.system_check.placement import placement_of


def check(path: Path, *, changes: Sequence[str] = (), month: str | None = None) -> SystemCheck:
    """The judgement of a scenario's servers with its workloads on them.

    Changes are keys set before it is read; a month says whose support has ended.
    """
    scenario = read_scenario(path, changes=changes, option="--what-if")
    return check_scenario(scenario, read_catalog(), month=month)


def check_scenario(
    scenario: Scenario, catalog: Catalog, *, month: str | None = None
) -> SystemCheck:
    """The judgement of a scenario that is read already."""
    require_servers(scenario)
    judged = [
        judge_workload(scenario, work, placement_of(scenario, work, catalog))
        for work in scenario.workloads
    ]
    whole = judge_whole(scenario, judged, catalog)
    balance = alternatives_to(scenario, judged, whole)
    return system_check(scenario, judged, whole, balance=balance, month=month)

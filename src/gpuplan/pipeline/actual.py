"""Diff of a plan file and an export of costs: what was planned beside what was paid."""

from pathlib import Path

from gpuplan.domain.money.statement import ActualComparison
from gpuplan.inputs.plan_file import read_plan
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.observe.opencost import read_opencost
from gpuplan.studies.drift.actual_cost import compare_costs
from gpuplan.studies.planning.gate import refuse
from gpuplan.studies.whole_design.assemble import chosen_plan


def diff_costs(plan_file: Path, costs: Path) -> ActualComparison:
    """The plan's dollars by workload, model and team beside those of the export.

    The export is JSON of the allocation API of OpenCost or Kubecost; a window that it does not
    name is taken as a month. A plan without a fleet is refused: there is nothing to compare.
    """
    answer = read_plan(plan_file)
    refuse(answer)
    scenario = scenario_from_dict(answer.provenance.scenario, name=answer.name)
    return compare_costs(answer, chosen_plan(answer), scenario, read_opencost(costs))

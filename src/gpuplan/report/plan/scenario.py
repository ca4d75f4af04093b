"""What a scenario says, as understood: work, terms, and every default with its key."""

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import pick, result_sheet
from gpuplan.report.formats import plural
from gpuplan.report.table import table


def scenario_sheet(scenario: Scenario, name: str) -> Sheet:
    """A scenario that was read without error."""
    columns = {
        "workload": lambda w: w.name,
        "kind": lambda w: w.kind,
        "model": lambda w: (w.model.name if w.model else "") or "–",
    }
    body = {
        "ok": True,
        **pick(scenario, "name", "sha256", "objective"),
        "workloads": [
            {**pick(w, "name", "kind"), "model": w.model.name if w.model else None}
            for w in scenario.workloads
        ],
    }
    work = plural(len(scenario.workloads), "workload")
    defaults = plural(len(scenario.assumptions), "default")
    return result_sheet(
        body,
        [table("", scenario.workloads, columns)],
        head=f"{name}: {work}, {defaults} assumed",
        assumptions=scenario.assumptions,
    )

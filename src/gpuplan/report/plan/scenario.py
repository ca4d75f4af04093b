"""What a scenario says, as understood: work, terms, and every default with its key."""

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Workload
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document


def scenario_sheet(scenario: Scenario, name: str) -> Sheet:
    """A scenario that was read without fault."""
    rows = tuple(_workload_row(work) for work in scenario.workloads)
    work = "1 workload" if len(rows) == 1 else f"{len(rows)} workloads"
    head = f"{name}: {work}, {len(scenario.assumptions)} defaults taken"
    return Sheet(
        document={
            "schema_version": SCHEMA_VERSION,
            "ok": True,
            "name": scenario.name,
            "sha256": scenario.sha256,
            "objective": scenario.objective,
            "workloads": [
                {"name": w.name, "kind": w.kind, "model": w.model.name if w.model else None}
                for w in scenario.workloads
            ],
            "assumptions": assumptions_document(scenario.assumptions),
        },
        tables=(Table(title="", columns=("workload", "kind", "model"), rows=rows),),
        head=head,
        remarks=(("Assumed:", assumption_lines(scenario.assumptions)),),
    )


def _workload_row(work: Workload) -> tuple[str, str, str]:
    model = work.model.name if work.model and work.model.name else "–"
    return work.name, work.kind, model

"""What a scenario says, as understood: work, terms, and every default with its key."""

from typing import Any

import yaml

from gpuplan.domain.requests.plan import Description
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import pick, pick_each, result_sheet
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


def description_sheet(found: Description) -> Sheet:
    """What a description in words was understood as, and what was assumed for the rest."""
    columns = {
        "key": lambda each: each.key,
        "value": lambda each: shown(each.value),
        "words": lambda each: f"“{each.words}”",
    }
    body = {"understood": pick_each(found.understood, "key", "value", "words")}
    return result_sheet(
        {**body, "scenario": found.tree},
        [table("Understood", found.understood, columns)],
        assumptions=found.assumptions,
    )


def description_lines(found: Description) -> list[str]:
    """What was understood and assumed, a line each, as printed before a plan."""
    read = [f"  {each.key}: {shown(each.value)} (“{each.words}”)" for each in found.understood]
    rest = [
        f"  {note.what}: {note.value}: {note.why} (change with {note.change})"
        for note in found.assumptions
    ]
    return ["Understood:", *read, *(["Assumed:", *rest] if rest else [])]


def shown(value: Any) -> str:
    """A value of a scenario on one line."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return text.removesuffix("\n...\n").strip()


def scenario_text(found: Description) -> str:
    """The scenario of a description as a file, with what was assumed as comments."""
    head = [f"# assumed: {note.what}: {note.value}; {note.why}" for note in found.assumptions]
    body = yaml.safe_dump(dict(found.tree), sort_keys=False, allow_unicode=True, width=100)
    return "\n".join([*head, body])

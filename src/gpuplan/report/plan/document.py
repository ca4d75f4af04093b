"""A plan as a document for machines and as the text of plan.yaml.

What a scenario says, as understood: work, terms, and every default with its key.
"""

import re
from dataclasses import asdict
from typing import Any

import yaml

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.plan import Description
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import SCHEMA_VERSION, pick, pick_each, result_sheet
from gpuplan.report.formats import plural
from gpuplan.report.table import table

KIND = "gpuplan-plan"
# Names may look like values: infinity is an engine, 08 a zone, 1:30 a ratio, no a country.
_LIKE_A_VALUE = re.compile(
    r"[-+.]*[0-9][0-9a-zA-Z_.:+-]*|[-+]?\.?(?i:inf|infinity|nan)|(?i:yes|no|on|off|null|true|false|~)"
)
Document = dict[str, Any]

_HEAD = """\
# A plan made by gpuplan. Everything that it rests on is in this file.
#   gpuplan explain plan.yaml        why this, and why not the others
#   gpuplan verify plan.yaml         whether its figures agree with an independent checker
#   gpuplan report plan.yaml         one page with charts
#   gpuplan diff old.yaml plan.yaml  what changed
"""


def plan_document(answer: Answer) -> Document:
    """The machine-readable plan; reading it back gives the same answer."""
    body = _plain(asdict(answer))
    if body["plan"]:
        body["plan"].update(body["plan"].pop("bill"))
        if not body["plan"]["orders"]:  # nothing is bought or reserved
            del body["plan"]["orders"]
        for pool in body["plan"]["pools"]:
            pool.update(pool.pop("layout"), **pool.pop("steps"))
            if not pool["max_loras"]:  # it serves no adapters
                del pool["max_loras"]
            if pool["use"]["load_frac"] == 1.0:  # the only pool of its workload
                del pool["use"]["load_frac"]
    for key in ("largest", "question"):
        if not body["explanation"][key]:  # nobody asked
            del body["explanation"][key]
    body.update(body.pop("decision"))
    for row in body["comparison"]:
        row.update(row.pop("evidence"))
    certificate = (body["proof"] or {}).pop("certificate", [])
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "feasible": answer.feasible,
        "gap": answer.gap_frac,
        **body,
        "certificate": certificate,
    }


def plan_text(answer: Answer) -> str:
    """The text of plan.yaml: the same answer gives the same bytes."""
    body = yaml.dump(
        plan_document(answer), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )
    return f"{_HEAD}{body}"


class _Dumper(yaml.SafeDumper):
    """Plain YAML without anchors: a diff shows what changed and nothing else."""

    def ignore_aliases(self, data: Any) -> bool:
        """Nothing is shared."""
        return True


def _floats(dumper: yaml.SafeDumper, numbers: "_Numbers") -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", list(numbers), flow_style=True)


class _Numbers(list[float]):
    """A row of numbers, kept on one line."""


_Dumper.add_representer(_Numbers, _floats)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """A word in quotes where a reader could take it for a number or a truth value."""
    style = "'" if _LIKE_A_VALUE.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, float) for item in value):
            return _Numbers(map(float, value))
        return [_plain(item) for item in value]
    # A float of an array library is a float that YAML does not know.
    return float(value) if isinstance(value, float) else value


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

"""Several services in one description: each model with the load that stands beside it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuplan.inputs.words.assemble import assemble
from gpuplan.inputs.words.conditions import put_terms
from gpuplan.inputs.words.draft import Draft, merged
from gpuplan.inputs.words.scan import Fact, Named, Scan

_CUT = re.compile(r"[,;:+&]|\b(?:and|plus|as\s+well\s+as|while|then)\b", re.IGNORECASE)
FIRST = "workloads[0]"


class Service(NamedTuple):
    """A model and what is said beside it."""

    model: Named
    facts: tuple[Fact, ...]


def services_of(text: str, found: Scan, is_task: Callable[[str], bool]) -> list[Service]:
    """Each model with the facts of its clauses; empty where clauses do not keep them apart."""
    cuts = [0, *_cuts(text, found.facts), len(text)]
    starts: list[int] = []
    for named in sorted(found.models, key=lambda each: each.start):
        begin = max(cut for cut in cuts if cut <= named.start)
        if starts and begin <= starts[-1]:
            return []
        starts.append(begin)
    starts[0] = 0
    ends = [*starts[1:], len(text)]
    ordered = sorted(found.models, key=lambda each: each.start)
    services = [
        Service(named, tuple(f for f in found.facts if a <= f.start < b and is_task(f.field)))
        for named, a, b in zip(ordered, starts, ends, strict=True)
    ]
    return services if all(not merged(each.facts)[1] for each in services) else []


def _cuts(text: str, facts: tuple[Fact, ...]) -> Iterator[int]:
    spans = [(fact.start, fact.start + len(fact.words)) for fact in facts]
    for match in _CUT.finditer(text):
        if not any(start <= match.start() < end for start, end in spans):
            yield match.end()


def assemble_services(draft: Draft, services: list[Service]) -> None:
    """A workload of each service, then the terms that are common to all."""
    works = draft.tree["workloads"]
    for service in services:
        part = Draft(draft.tree["name"], merged(service.facts)[0], {})
        assemble(part, (service.model,))
        for work in part.tree["workloads"]:
            same = sum(known["name"].split(" ")[0] == work["name"] for known in works)
            works.append({**work, "name": f"{work['name']} {same + 1}" if same else work["name"]})
        place = f"workloads[{len(works) - 1}]"
        draft.understood += [
            replace(each, key=each.key.replace(FIRST, place)) for each in part.understood
        ]
        for note in part.assumed:
            change = note.change.replace(FIRST, place)
            is_flag = place != FIRST and change.startswith("--") and "set" not in change
            change = f"--set {place}.…" if is_flag else change
            draft.assumed.append(
                replace(note, change=change, what=f"{works[-1]['name']}: {note.what}")
            )
        draft.facts.update(part.facts)  # what has no place is named by the caller
    put_terms(draft, is_job=all("batch" in work for work in works))

"""Several services in one description: each model with the load that stands beside it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from gpuplan.inputs.words.amounts import Rate
from gpuplan.inputs.words.assemble import BY_MODEL, assemble
from gpuplan.inputs.words.conditions import put_terms
from gpuplan.inputs.words.draft import Draft, merged
from gpuplan.inputs.words.scan import Fact, Named, Scan
from gpuplan.inputs.words.service import TOKENS_PER_AUDIO_S

_CUT = re.compile(r"[,;+&]|\.(?=\s)|\b(?:and|plus|as\s+well\s+as|while|then)\b", re.IGNORECASE)
_BOTH = re.compile(
    r"\b(?:both|all)\s+(?:of\s+them\s+)?(?:with\s+|at\s+|in\s+|have\s+|are\s+)?$", re.IGNORECASE
)
FIRST = "workloads[0]"


LOADS = (
    *("demand.users", "demand.concurrent", "demand.requests_per_s", "demand.requests_per_day"),
    *("demand.output", "rate.", "mean.", "peak.", "amount."),
)
HEADS = ("use", "kind", "method")  # what a workload is, where no model says it


class Service(NamedTuple):
    """A workload of its own: its models, and what is said beside them."""

    models: tuple[Named, ...]
    facts: tuple[Fact, ...]

    @property
    def has_head(self) -> bool:
        """Whether it is said what it is: a model or a kind of work."""
        return bool(self.models) or any(fact.field in HEADS for fact in self.facts)

    @property
    def has_load(self) -> bool:
        """Whether it is said how much there is to do."""
        return any(fact.field.startswith(LOADS) for fact in self.facts)

    def joined(self, other: "Service") -> "Service":
        """Both as one workload."""
        return Service((*self.models, *other.models), (*self.facts, *other.facts))


def services_of(text: str, found: Scan, is_task: Callable[[str], bool]) -> list[Service]:
    """Workloads that each say what they are and how much there is to do; empty: it is one.

    Clauses are joined until both are said; a clause that says what else there is begins another.
    """
    cuts = [0, *_cuts(text, found.facts), len(text)]
    facts = [fact for fact in found.facts if is_task(fact.field)]
    clauses = [
        Service(
            tuple(m for m in found.models if a <= m.start < b),
            tuple(f for f in facts if a <= f.start < b),
        )
        for a, b in pairwise(cuts)
    ]
    groups = _grouped(clauses, lambda one: one.has_head and one.has_load, lambda one: one.has_head)
    if not groups[-1].has_load and len(groups) > 1:  # a further stage of the last, with its load
        groups[-2:] = [groups[-2].joined(groups[-1])]
    if len(groups) == 1 and merged(groups[0].facts)[1]:  # stages of one load, each of its shape
        groups = _grouped(clauses, lambda one: bool(one.models), lambda one: bool(one.models))
        load = tuple(fact for fact in groups[0].facts if fact.field.startswith(LOADS))
        groups = [each if each.has_load else each.joined(Service((), load)) for each in groups]
    groups = _with_common(text, _heard(groups))
    is_apart = len(groups) > 1 and all(not merged(each.facts)[1] for each in groups)
    return groups if is_apart else []


def _heard(groups: list[Service]) -> list[Service]:
    """A model that reads what another one heard: its tokens are those of the speech."""
    if len(groups) != 1:
        return groups
    [one] = groups
    writers = tuple(named for named in one.models if named.model.kind == "decoder")
    others = tuple(named for named in one.models if named not in writers)
    audio = [fact for fact in one.facts if fact.field in ("rate.audio_s", "amount.audio_s")]
    if not writers or not audio or not any(named.model.kind == "speech" for named in others):
        return groups
    read = [
        f
        for f in one.facts
        if f.field.startswith(("request.", "deadline_s"))
        or (f.field == "use" and f.value not in BY_MODEL.values())
    ]
    [spoken] = audio[:1]
    unit = spoken.field.replace("audio_s", "token")
    is_rate = isinstance(spoken.value, Rate)
    n = spoken.value.times(TOKENS_PER_AUDIO_S) if is_rate else spoken.value * TOKENS_PER_AUDIO_S
    tokens = spoken._replace(field=unit, value=n)
    heard = tuple(f for f in one.facts if f not in read or f.field == "deadline_s")
    return [Service(others, heard), Service(writers, (*read, tokens))]


def _with_common(text: str, groups: list[Service]) -> list[Service]:
    """What is said of both or all of them, or of retrieval, is said of each."""
    common = tuple(
        fact
        for each in groups
        for fact in each.facts
        if _BOTH.search(text[: fact.start]) or (fact.field, fact.value) == ("use", "rag")
    )
    return [
        Service(each.models, (*each.facts, *(f for f in common if f not in each.facts)))
        for each in groups
    ]


def _grouped(
    clauses: list[Service], is_whole: Callable[[Service], bool], begins: Callable[[Service], bool]
) -> list[Service]:
    """Clauses joined until they are whole and another begins."""
    groups: list[Service] = []
    for clause in clauses:
        if groups and not (is_whole(groups[-1]) and begins(clause)):
            groups[-1] = groups[-1].joined(clause)
        else:
            groups.append(clause)
    return groups


def _cuts(text: str, facts: tuple[Fact, ...]) -> Iterator[int]:
    spans = [(fact.start, fact.start + len(fact.words)) for fact in facts]
    for match in _CUT.finditer(text):
        if not any(start <= match.start() < end for start, end in spans):
            yield match.end()


def _same_model(services: list[Service], service: Service) -> tuple[Named, ...]:
    """The model that writes for another workload, where one that writes is not named."""
    uses = {
        use
        for f in service.facts
        if f.field == "use"
        for use in (f.value if isinstance(f.value, tuple) else (f.value,))
    }
    writing = [m for each in services for m in each.models if m.model.kind == "decoder"]
    return tuple(writing[:1]) if not uses & set(BY_MODEL.values()) else ()


def assemble_services(draft: Draft, services: list[Service]) -> None:
    """A workload of each service, then the terms that are common to all."""
    works = draft.tree["workloads"]
    for service in services:
        part = Draft(draft.tree["name"], merged(service.facts)[0], {})
        models = service.models or _same_model(services, service)
        assemble(part, models)
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

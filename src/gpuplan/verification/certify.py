"""All checks of a plan, in: its document and facts; out: the certificate."""

from collections.abc import Iterator

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.errors import Problem, ViolationError
from gpuplan.verification.claims import Document, same
from gpuplan.verification.comparison import comparison_checks
from gpuplan.verification.counts import count_checks
from gpuplan.verification.limits import limit_checks
from gpuplan.verification.memory import memory_checks
from gpuplan.verification.money import money_checks
from gpuplan.verification.physics import physics_checks
from gpuplan.verification.seal import seal_checks
from gpuplan.verification.service import service_checks

FIX = "report it: a plan must agree with its own figures"


def certificate_of(document: Document, facts: PlanFacts) -> tuple[Check, ...]:
    """Every claim of the plan beside what was found; none where there is no plan."""
    if document.get("plan") is None:
        return ()
    checks = tuple(_checks(document, facts))
    return (*checks, *seal_checks(document, checks))


def _checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    made = document["provenance"]
    yield same("facts: catalog", made["catalog_sha256"][:16], facts.catalog_sha256[:16])
    scenario = facts.scenario.sha256[:16]
    yield same("facts: scenario", made["scenario_sha256"][:16], scenario)
    yield from count_checks(document, facts)
    yield from memory_checks(document, facts)
    yield from physics_checks(document, facts)
    yield from service_checks(document, facts)
    yield from limit_checks(document, facts)
    yield from money_checks(document)
    yield from comparison_checks(document, facts)


def refuse_unverified(answer: Answer) -> None:
    """Raise ViolationError where a plan disagrees with its own figures: it is not to be shown."""
    refuse_disagreement(answer.name, answer.proof.certificate if answer.proof else ())


def refuse_disagreement(name: str, checks: tuple[Check, ...], fix: str = FIX) -> None:
    """Raise ViolationError with both numbers of every check that fails."""
    failed = [check for check in checks if not check.ok]
    if failed:
        raise ViolationError(name, [Problem(c.name, disagreement(c), fix) for c in failed])


def disagreement(check: Check) -> str:
    """Both numbers in a sentence."""
    must = {"=": "found", "<=": "at most", ">=": "at least"}[check.relation]
    unit = f" {check.unit}" if check.unit else ""
    return f"claimed {_shown(check.claimed)}{unit}, {must} {_shown(check.found)}{unit}"


def _shown(amount: float | str) -> str:
    if isinstance(amount, str):
        return repr(amount) if amount else "nothing"
    return f"{amount:,.6g}"

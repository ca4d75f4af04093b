"""All checks of a plan, in: its document and facts; out: the certificate.

Seals of a plan, in: its document; out: a digest of each section, so that no edit goes unseen.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.errors import Problem, ViolationError
from gpuplan.verification.claims import Document, is_number, same
from gpuplan.verification.comparison import comparison_checks
from gpuplan.verification.counts import count_checks, limit_checks
from gpuplan.verification.money import money_checks
from gpuplan.verification.physics import memory_checks, physics_checks
from gpuplan.verification.service import service_checks

SEAL = "seal of "
CERTIFICATE = "certificate"
# Written beside the answer by the report, from what the answer holds.
UNSEALED = ("schema_version", "kind", "gap", CERTIFICATE)
N_DIGITS = 16


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


def seal_checks(document: Document, checks: Sequence[Check]) -> Iterator[Check]:
    """Every section as it was certified, and the certificate itself last."""
    before = stored_seals(document)
    for section, digest in _digests(document).items():
        yield same(f"{SEAL}{section}", before.get(section, digest) if before else digest, digest)
    if before is not None:
        yield from _certificate_checks(document, before)
    else:
        rows = [*_claims(checks), *sorted(_digests(document).items())]
        digest = digest_of(rows)
        yield same(f"{SEAL}{CERTIFICATE}", digest, digest)


def _certificate_checks(document: Document, before: Mapping[str, str]) -> Iterator[Check]:
    """The stored certificate against its own seal: no row was changed, taken out or added."""
    rows = [row for row in document[CERTIFICATE] if not row["name"].startswith(SEAL)]
    seals = {name: digest for name, digest in before.items() if name != CERTIFICATE}
    digest = digest_of([*map(_row, rows), *sorted(seals.items())])
    yield same(f"{SEAL}{CERTIFICATE}", before.get(CERTIFICATE, "missing"), digest)
    turned = [
        row["name"]
        for row in document[CERTIFICATE]
        if row["name"].startswith(SEAL)
        and (row["claimed"], row["relation"], row["tolerance_frac"], row["ok"])
        != (row["found"], "=", 0.0, True)
    ]
    yield same("seals: as they were made", ", ".join(turned), "")
    gone = [name for name in _digests(document) if name not in before]
    yield same("seals: one for each section", ", ".join(gone), "")


def stored_seals(document: Document) -> dict[str, str] | None:
    """Digests by section as the certificate keeps them; None: it was never certified."""
    rows = document.get(CERTIFICATE) or ()
    found = {
        row["name"].removeprefix(SEAL): str(row["claimed"])
        for row in rows
        if row["name"].startswith(SEAL)
    }
    return found if rows else None


def _digests(document: Document) -> dict[str, str]:
    return {key: digest_of(value) for key, value in sorted(document.items()) if key not in UNSEALED}


def _claims(checks: Sequence[Check]) -> list[Any]:
    return [
        _row(
            {
                "name": check.name,
                "claimed": check.claimed,
                "relation": check.relation,
                "found": check.found,
                "tolerance_frac": check.tolerance_frac,
                "unit": check.unit,
                "ok": check.ok,
            }
        )
        for check in checks
    ]


def _row(row: Mapping[str, Any]) -> list[Any]:
    keys = ("name", "claimed", "relation", "found", "tolerance_frac", "unit", "ok")
    return [row[key] for key in keys]


def digest_of(value: Any) -> str:
    """The first digits of the SHA-256 of the value, the same however a number is written."""
    text = json.dumps(_plain(value), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    # Digits alone, or with an e between them, would be a number to other writers of YAML.
    return f"#{sha256(text.encode()).hexdigest()[:N_DIGITS]}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return repr(float(value)) if is_number(value) else value

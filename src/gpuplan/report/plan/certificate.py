"""A certificate as tables: what a plan claims beside what an independent checker found."""

from gpuplan.domain.plan.certificate import Amount, Check, Verified
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import pick, pick_each, result_sheet
from gpuplan.report.formats import plural
from gpuplan.report.table import table

KEYS = ("name", "claimed", "relation", "found", "tolerance_frac", "unit", "ok")
COLUMNS = {
    "check": lambda check: check.name,
    "claimed": lambda check: _shown(check.claimed),
    "": lambda check: check.relation,
    "found": lambda check: _shown(check.found),
    "unit": lambda check: check.unit,
    "verdict": lambda check: "agrees" if check.ok else "disagrees",
}


def verified_sheet(verified: Verified) -> Sheet:
    """All checks of a plan file; those that disagree come first."""
    body = {
        **pick(verified, "name"),
        "ok": not verified.failed,
        "n_checks": len(verified.checks),
        "n_failed": len(verified.failed),
        "checks": pick_each(verified.checks, *KEYS),
    }
    rows = [*verified.failed, *(check for check in verified.checks if check.ok)]
    return result_sheet(body, [table("", rows, COLUMNS)], head=_head(verified))


def _head(verified: Verified) -> str:
    checks = plural(len(verified.checks), "check")
    if not verified.failed:
        return f"{verified.name}: verified, {checks} agree."
    return f"{verified.name}: NOT verified, {len(verified.failed)} of {checks} disagree."


def certificate_line(checks: tuple[Check, ...]) -> str:
    """How many checks a plan passed, in a sentence."""
    n_agree = sum(check.ok for check in checks)
    return f"{n_agree} of {plural(len(checks), 'independent check')} agree (gpuplan verify)"


def _shown(amount: Amount) -> str:
    return amount if isinstance(amount, str) else f"{amount:,.6g}"

"""A system before and after a change, as a sheet: what is mended, what is new, what stays."""

from collections.abc import Iterator

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.check import SystemCheck
from gpuplan.domain.system.findings import Finding
from gpuplan.report.system.check import check_document
from gpuplan.report.system.facility import finding_document
from gpuplan.report.system.parts import gravest_first


def change_sheet(before: SystemCheck, after: SystemCheck) -> Sheet:
    """Both judgements, and the difference between them."""
    rows = tuple(_rows(before, after))
    columns = ("", "severity", "where", "what", "what helps")
    words = {True: "sound", False: "rejected"}
    share = f"busy {_busy(before):.0%} before, {_busy(after):.0%} after"
    return Sheet(
        document={
            "before": check_document(before),
            "after": check_document(after),
            "mended": [finding_document(f) for f in _gone(before, after)],
            "new": [finding_document(f) for f in _gone(after, before)],
        },
        tables=(Table(title="What the change does", columns=columns, rows=rows),),
        head=f"{after.name}: {words[before.is_ok]} before, {words[after.is_ok]} after; {share}",
    )


def _busy(checked: SystemCheck) -> float:
    return min(work.busy_frac for work in checked.works)


def _gone(first: SystemCheck, second: SystemCheck) -> list[Finding]:
    """Findings of the first that the second has not, by rule and place."""
    kept = {(f.rule, f.where, f.what) for f in second.findings}
    return [f for f in gravest_first(first.findings) if (f.rule, f.where, f.what) not in kept]


def _rows(before: SystemCheck, after: SystemCheck) -> Iterator[tuple[str, ...]]:
    for found in _gone(before, after):
        yield "gone", found.severity, found.where, found.what, ""
    for found in _gone(after, before):
        yield "new", found.severity, found.where, found.what, found.fix
    stays = {(f.rule, f.where, f.what) for f in before.findings}
    for found in gravest_first(after.findings):
        if (found.rule, found.where, found.what) in stays:
            yield "stays", found.severity, found.where, found.what, found.fix

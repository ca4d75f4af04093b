"""A certificate as people read it: disagreements first."""

from gpuplan.domain.plan.certificate import Check, Verified
from gpuplan.report.plan.certificate import certificate_line, verified_sheet


def check(name, *, ok=True):
    return Check(
        name=name, claimed=1.0, relation="=", found=1.0 if ok else 2.0, tolerance_frac=0.0,
        unit="USD", ok=ok,
    )  # fmt: skip


def test_a_plan_that_agrees():
    sheet = verified_sheet(Verified(name="chat", checks=(check("a"), check("b"))))
    assert sheet.head == "chat: verified, 2 checks agree."
    assert sheet.document["ok"] is True
    assert sheet.document["checks"][0]["claimed"] == 1.0


def test_disagreements_come_first():
    sheet = verified_sheet(Verified(name="chat", checks=(check("a"), check("b", ok=False))))
    assert sheet.head == "chat: NOT verified, 1 of 2 checks disagree."
    assert [row[0] for row in sheet.tables[0].rows] == ["b", "a"]
    assert sheet.document["n_failed"] == 1


def test_the_line_of_a_plan_counts_them():
    line = certificate_line((check("a"), check("b", ok=False)))
    assert line == "1 of 2 independent checks agree (gpuplan verify)"

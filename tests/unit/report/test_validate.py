"""What validation shows of rows that it could not predict."""

from gpuplan.domain.calibration.validation import ValidationReport
from gpuplan.report.prediction.validation import MOST_REFUSED, validate_sheet


def report(refused):
    return ValidationReport(
        kind="llm_inference", n_rows=len(refused), n_covered=0, metrics={}, by={"regime": {}},
        rows=(), refused=tuple(refused), cross=None,
    )  # fmt: skip


def remarks(refused):
    return dict(validate_sheet(report(refused)).remarks)["Not predicted:"]


def test_reasons_are_counted_most_frequent_first():
    rare = ("a", "model: Foo: is not in the catalog")
    often = [(f"b{i}", "row: batch: got 'x'; use a number") for i in range(3)]
    assert remarks([rare, *often]) == (
        "3 × row: batch: got 'x'; use a number (first: b0)",
        "1 × model: Foo: is not in the catalog (first: a)",
    )


def test_no_row_is_lost_among_many_reasons():
    many = [(str(i), f"reason {i}") for i in range(MOST_REFUSED + 5)]
    lines = remarks(many)
    assert len(lines) == MOST_REFUSED + 1
    assert lines[-1] == "5 more for 5 other reasons"
    assert len(validate_sheet(report(many)).document["refused"]) == len(many)

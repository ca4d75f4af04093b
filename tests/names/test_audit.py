"""The audit draws as many facts as it says, the same by one seed, and none is without a source."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import audit_catalog as audit


def drawn(monkeypatch, capsys, seed):
    monkeypatch.setattr(sys, "argv", ["audit_catalog.py", str(seed)])
    assert audit.main() == 0
    return capsys.readouterr().out.splitlines()


def test_the_draw_is_whole_and_repeats_by_seed(monkeypatch, capsys):
    lines = drawn(monkeypatch, capsys, 7)
    counts = {kind: sum(line.startswith(kind) for line in lines) for kind in audit.DRAWN}
    assert counts == audit.DRAWN
    assert lines == drawn(monkeypatch, capsys, 7)
    assert lines != drawn(monkeypatch, capsys, 8)
    assert lines[-1].endswith(" 0 without a source")


@pytest.mark.parametrize(("source", "n"), [("", 1), ("nobody-knows", 1), ("recalled", 0)])
def test_a_fact_without_a_known_source_is_found(source, n):
    fact = audit.Drawn("accelerator", "h100-sxm", "peak_bf16", "989", source)
    assert len(audit.sourceless([fact])) == n

"""Every trap in the table has tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8").split("## Traps")[1]
ROWS = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", TABLE, flags=re.M)


def named_in(cell: str):
    for part in cell.split(";"):
        path, names = part.strip().split(": ")
        for name in names.split(", "):
            yield path, name.strip()


def test_every_trap_of_money_and_place_is_there():
    assert [int(number) for number, _ in ROWS] == [5, 6, *range(34, 49)]


@pytest.mark.parametrize(
    ("number", "path", "name"),
    [(number, *found) for number, cell in ROWS for found in named_in(cell)],
)
def test_test_of_a_trap_exists(number, path, name):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"def {name}(" in text, f"trap {number}: {path} has no {name}"

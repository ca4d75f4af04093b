"""The page docs/requirements.md, and the run that prints a line for each requirement."""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from requirements import checks  # noqa: F401  (registers them)
from requirements.asking import Ask, Workplace
from requirements.registry import CHECKS, Check, checks_of, verdict
from requirements.says import SAYS
from shared_data import ROOT

HEAD = """# Requirements

What the two documents ask for, R1 to R114, and whether gpuplan does it. Each line is tried by
running the command and holding its answer against arithmetic of the check's own
(`tests/requirements/checks`). *works*: every check of it passes. *partly*: some do; what is missing
is named, and its check fails until it is built. *elsewhere*: another part of the project answers
for it. `python3 dev.py requirements` runs all of them and ends with 0 when none is missing; with
`--write` it writes this page.

"""


def page() -> str:
    """The page, from what the checks declare; tests hold every declaration to the truth."""
    count = Counter(verdict(requirement) for requirement in SAYS)
    total = ", ".join(f"{n} {name}" for name, n in sorted(count.items(), key=lambda one: -one[1]))
    lines = [f"**{len(SAYS)} requirements, {len(CHECKS)} checks: {total}.**", ""]
    lines += ["| R | what is asked for | command | verdict |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {says} | {_commands(name)} | {_told(name)} |" for name, says in SAYS.items()
    ]
    return HEAD + "\n".join(lines) + "\n"


def _commands(requirement: str) -> str:
    """Commands that answer today, and those that are wanted."""
    shown = dict.fromkeys(
        f"wanted: `{one.command}`" if one.missing or one.elsewhere else f"`gpuplan {one.command}`"
        for one in checks_of(requirement)
    )
    return "<br>".join(shown).replace("|", "\\|")


def _told(requirement: str) -> str:
    reasons = [one.missing or one.elsewhere for one in checks_of(requirement)]
    return ": ".join(
        [f"**{verdict(requirement)}**", "; ".join(filter(None, reasons))]
    ).removesuffix(": ")


def run() -> int:
    """Every check is run; a line for each requirement; 0 when nothing is missing."""
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        for requirement, says in SAYS.items():
            surprises = [text for one in checks_of(requirement) if (text := _surprise(one, place))]
            told = "; ".join([_told(requirement).replace("*", ""), *surprises])
            is_good &= not surprises and verdict(requirement) in ("works", "elsewhere")
            sys.stdout.write(f"{requirement:<5} {says}: {told}\n")
            sys.stdout.flush()
    return 0 if is_good else 4


def _surprise(one: Check, place: Workplace) -> str:
    """How the check's outcome differs from what it declares; empty where it does not."""
    if one.elsewhere:
        return ""
    try:
        one.body(Ask(place, one.command))
    except Exception as failure:  # noqa: BLE001  (every failure is an answer here)
        text = str(failure).splitlines()
        return "" if one.missing else f"FAILS: {one.title}: {text[0] if text else type(failure)}"
    return f"PASSES already: {one.title}" if one.missing else ""


if __name__ == "__main__":
    if "--write" in sys.argv:
        (ROOT / "docs" / "requirements.md").write_text(page(), encoding="utf-8")
        sys.exit(0)
    sys.exit(run())

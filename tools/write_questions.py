"""Write docs/howto/questions.md: worked questions with scenario and arithmetic.

python tools/write_questions.py
"""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ROOT / "examples" / "questions.yaml"
PAGE = ROOT / "docs" / "howto" / "questions.md"
HEAD = """# Worked questions

Forty questions of ten kinds. Nothing in the bounds comes from gpuplan: they are hand arithmetic
on published figures, and the tests hold every plan to them
(`python3 dev.py consistency --questions all`). To ask one yourself, save its scenario as a file
and run `gpuplan plan FILE`.

Written by `tools/write_questions.py` from `examples/questions.yaml`.
"""


def page() -> str:
    """The whole page."""
    questions = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))["questions"]
    return "\n".join([HEAD, *(_question(found) for found in questions)])


def _question(found: dict[str, Any]) -> str:
    scenario = yaml.safe_dump(found["scenario"], sort_keys=False, allow_unicode=True, width=110)
    rows = [_bound(bound) for bound in found["bounds"]]
    lines = [f"## {found['question']}", "", "```yaml", scenario.rstrip(), "```", ""]
    return "\n".join([*lines, "| bound | by hand | because |", "|---|---|---|", *rows, ""])


def _bound(bound: dict[str, Any]) -> str:
    kind = "least" if "least" in bound else "most"
    quantity = bound[kind]
    because = str(bound.get("because", "")).replace("|", "\\|")
    return f"| {quantity}, at {kind} | `{bound.get('value', '')}` | {because} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

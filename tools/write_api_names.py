"""Write the table of public names in docs/api.md, each with the line that explains it.

python tools/write_api_names.py
"""

import inspect
from pathlib import Path

import gpuplan

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
HEAD = "| name | what it is |\n|---|---|\n"


def page_with_names(text: str) -> str:
    """The page with its table written anew."""
    rows = [f"| `{name}` | {first_line(getattr(gpuplan, name))} |" for name in gpuplan.__all__]
    return text.split(HEAD, maxsplit=1)[0] + HEAD + "\n".join(rows) + "\n"


def first_line(thing: object) -> str:
    """The first line of its docstring, safe in a table."""
    return (inspect.getdoc(thing) or "").splitlines()[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page_with_names(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

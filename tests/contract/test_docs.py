"""Documentation cannot rot: rooms have pages, citations resolve, links lead somewhere."""

import ast
import io
import re
import shlex
import tokenize
import tomllib
from pathlib import Path

import pytest
import typer
import write_docs
import write_questions

from gpuplan.cli.app import app
from shared_data import ROOT

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
SOURCE = ROOT / "src" / "gpuplan"
KEY = r"(?:measured:)?[A-Za-z][\w.+-]*[\w+]"
FRESH = "run python tools/write_docs.py and read the change"
CITATION = re.compile(rf"(?<=[ (])\[({KEY}(?:, {KEY})*)\](?=[ .,;:)\n]|$)", re.MULTILINE)


def rooms() -> list[str]:
    return sorted(p.name for p in SOURCE.iterdir() if (p / "__init__.py").exists())


def words_of(path: Path) -> str:
    """Comments and docstrings of a module, where citations stand."""
    text = path.read_text()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, DOCUMENTED)]
    return "\n".join(comments + [ast.get_docstring(node) or "" for node in nodes])


def citations() -> list[tuple[str, str]]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        for match in CITATION.finditer(words_of(path)):
            # Axes of an array stand in brackets too; they are small words without a figure.
            keys = [key for key in match[1].split(", ") if not re.fullmatch("[a-z ]+", key)]
            found |= {(key, str(path.relative_to(ROOT))) for key in keys}
    return sorted(found)


def references() -> set[str]:
    text = (ROOT / "docs" / "references.md").read_text()
    sources = SOURCE.glob("**/data/sources*.toml")
    keys = {key for path in sources for key in tomllib.loads(path.read_text())}
    return keys | set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


@pytest.mark.parametrize("room", rooms())
def test_room_has_its_page(room):
    page = (ROOT / "docs" / "rooms" / "README.md").read_text()
    assert f"`{room}`" in page, f"docs/rooms/README.md does not name {room}"
    if room != "domain":
        assert (ROOT / "docs" / "rooms" / f"{room}.md").exists()


@pytest.mark.parametrize(("key", "where"), citations())
def test_citation_resolves(key, where):
    assert key in references(), f"{where} cites [{key}]; add it to docs/references.md"


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def test_decisions_are_numbered_in_a_row():
    names = sorted(path.name for path in (ROOT / "docs" / "design").glob("*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_nothing_speaks_of_where_it_was_made():
    """Commit texts, docs and code speak of the project alone."""
    words = re.compile(r"pypi\.org|files\.pythonhosted|registry\.npmjs|/work/|\bhelper-\d")
    skipped = {".git", "__pycache__"}
    for path in ROOT.rglob("*"):
        is_text = path.suffix in {".py", ".md", ".toml", ".csv", ".yaml", ".jsonl", ".lock"}
        is_ours = not any(part in skipped or part.startswith(".venv") for part in path.parts)
        if is_text and is_ours and path != Path(__file__).resolve():
            found = words.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{path.relative_to(ROOT)}: {found[0]}"


def every_command() -> list[tuple[str, str]]:
    """Commands in blocks, indented or fenced, and in running text; continued lines joined."""
    found = []
    for page in write_docs.pages():
        text = page.read_text().replace("\\\n", " ")
        fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        lines = re.findall(r"^(?:\$ )?(gpuplan .*)$", fenced, re.MULTILINE)
        lines += re.findall(r"^    (gpuplan .*)$", text, re.MULTILINE)
        lines += re.findall(r"`(gpuplan [a-z][^`\n]*)`", text)
        commands = [re.split(r" +(?:#|>|\||…)", line)[0] for line in lines]
        found += [(str(page.relative_to(ROOT)), command) for command in commands]
    return sorted({(page, command) for page, command in found if page != "docs/reference/cli.md"})


@pytest.mark.parametrize(("page", "command"), every_command())
def test_every_command_in_the_docs_is_understood(page, command):
    """Verbs and options exist; nothing is run."""
    group, arguments = typer.main.get_command(app), shlex.split(command)[1:]
    while arguments and hasattr(group, "list_commands"):
        name = arguments.pop(0)
        group = group.get_command(None, name)
        assert group is not None, f"{page}: no verb {name}"
    known = {flag for param in group.params for flag in (*param.opts, *param.secondary_opts)}
    flags = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
    assert not flags - known, f"{page}: {command}: {sorted(flags - known)}"


BLOCKS = [
    pytest.param(page, i, id=f"{page.relative_to(ROOT)} {command.shown[:60]}")
    for page in write_docs.pages()
    for i, command in enumerate(write_docs.commands_of(page))
]


@pytest.mark.parametrize(("page", "i"), BLOCKS)
def test_output_in_the_docs_is_what_the_program_prints(page, i):
    command, shown = write_docs.commands_of(page)[i], write_docs.shown_blocks(page)[i]
    assert shown == write_docs.block(command), "run python tools/write_docs.py and read the change"


def test_every_output_in_the_docs_is_written_by_the_tool():
    for page in write_docs.pages():
        rest = write_docs.BLOCK.sub("", page.read_text())
        assert "$ gpuplan" not in rest, f"{page.relative_to(ROOT)}: see tools/write_docs.py"


def test_reference_and_accuracy_are_fresh():
    assert write_docs.REFERENCE.read_text() == write_docs.reference(), FRESH
    assert write_docs.accuracy() in (ROOT / "README.md").read_text(), FRESH


def test_worked_questions_are_as_their_file_says():
    text = (ROOT / "docs" / "howto" / "questions.md").read_text(encoding="utf-8")
    assert text == write_questions.page(), "run python tools/write_questions.py"


def test_every_page_of_the_site_exists_and_every_page_is_in_it():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/.-]+\.md)$", text, re.MULTILINE))
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert named == pages, f"mkdocs.yml: missing {pages - named}, gone {named - pages}"

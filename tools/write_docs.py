"""Write anew what the docs quote: outputs of commands, accuracy figures, the CLI reference.

    python tools/write_docs.py [PART_OF_A_PATH]

An output block follows a comment that holds its command; `lines` is how many lines it shows, `with`
are arguments that are passed and not shown, `first` is a command that is run before it, `exit` the
exit code that is expected:

    <!-- output lines=9 with="--as-of 2026-11-01": gpuplan plan examples/chat.yaml -->

`pytest tests/contract/test_docs.py` fails where a page says something else than the program does.
"""

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import typer
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from gpuplan.cli.app import EXAMPLES, app  # noqa: E402
from gpuplan.cli.command import group_of  # noqa: E402

REFERENCE = ROOT / "docs" / "reference" / "cli.md"
BLOCK = re.compile(
    r"<!-- output(?P<settings>[^:]*): (?P<command>.*?) -->\n```console\n.*?```\n", re.DOTALL
)
ACCURACY = re.compile(r"<!-- accuracy -->\n.*?<!-- end -->\n", re.DOTALL)
Figures = dict[str, Any]


class Command(NamedTuple):
    """One command of a page, and how much of its output is shown."""

    shown: str
    settings: dict[str, str]

    @property
    def arguments(self) -> list[str]:
        """What is passed to the program."""
        program, *given = shlex.split(self.shown)
        if program != "gpuplan":
            raise ValueError(f"{self.shown}: not a command of gpuplan")
        return [*given, *shlex.split(self.settings.get("with", ""))]


def pages() -> list[Path]:
    """Every page that may quote the program."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands_of(page: Path) -> list[Command]:
    """Commands whose output the page shows."""
    return [_command(found) for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def shown_blocks(page: Path) -> list[str]:
    """The same with their outputs, as the page has them."""
    return [found[0] for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def block(command: Command) -> str:
    """The comment and the block, with what the program prints now."""
    with scratch():
        if "first" in command.settings:
            CliRunner().invoke(app, shlex.split(command.settings["first"]))
        done = CliRunner().invoke(app, command.arguments)
    if done.exit_code != int(command.settings.get("exit", "0")):
        raise RuntimeError(f"{command.shown}: exit code {done.exit_code}\n{done.output}")
    lines = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    lines = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    lines = lines if lines[0] else lines[1:]
    n_shown = int(command.settings.get("lines", len(lines)))
    cut = ["…"] if n_shown < len(lines) else []
    text = "\n".join([f"$ {command.shown}", *lines[:n_shown], *cut]).replace("\n\n…", "\n…")
    settings = "".join(f" {key}={_quoted(value)}" for key, value in command.settings.items())
    return f"<!-- output{settings}: {command.shown} -->\n```console\n{text}\n```\n"


@contextmanager
def scratch() -> Iterator[None]:
    """An empty folder beside the examples, without anybody's own prices or settings."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        clean = {"XDG_CONFIG_HOME": folder, "NO_COLOR": "1"}
        with chdir(folder), patch.dict(os.environ, clean):
            os.environ.pop("COLUMNS", None)
            yield


def accuracy() -> str:
    """How right predictions are, from the figures of the validation run."""
    figures: Figures = json.loads((ROOT / "docs" / "validation.json").read_text(encoding="utf-8"))
    times, verdicts = figures["times"], figures["inference_verdicts"]
    coverage = [100 * split["range_coverage"] for row in times.values() for split in row.values()]
    rows = [
        f"| {what} | {_percent(row['model'])} | {_percent(row['source'])} | {row['model']['n']:,} |"
        for what, row in times.items()
    ]
    weights, cache = figures["inference_weights"], figures["inference_kv_cache"]
    training = figures["training_memory"]
    return "\n".join(
        [
            "<!-- accuracy -->",
            "| median absolute error | model held out | source held out | rows |",
            "|---|---:|---:|---:|",
            *rows,
            f"| training and fine-tuning memory | {_percent(training)} | | {training['n']} |",
            f"| inference memory: weights | {_percent(weights)} | | {weights['n']} |",
            "",
            f"80 % ranges contain {min(coverage):.0f} to {max(coverage):.0f} % of held-out rows. "
            f"vLLM starts or runs out of memory as predicted in {verdicts['right']} of "
            f"{verdicts['n']} logged",
            f"starts; KV cache size within {_percent(cache)} (median, two constants read off the "
            "same logs).",
            "<!-- end -->",
            "",
        ]
    )


def reference() -> str:
    """Every verb with its options, by group."""
    lines = [
        "# Command-line reference",
        "",
        "Generated by `tools/write_docs.py` from the program's own help. `gpuplan` alone prints:",
        "",
        "```",
        EXAMPLES,
        "```",
        "",
    ]
    for name, command in verbs(typer.main.get_command(app)):
        lines += _verb(name, command)
    return "\n".join(lines).rstrip() + "\n"


def verbs(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its full name."""
    for name in group.list_commands(None):
        command, full = group.get_command(None, name), f"{prefix}{name}"
        if hasattr(command, "list_commands"):
            yield from verbs(command, f"{full} ")
        else:
            yield full, command


def fresh(page: Path) -> str:
    """The page as it should be."""
    if page == REFERENCE:
        return reference()
    text = BLOCK.sub(lambda found: block(_command(found)), page.read_text(encoding="utf-8"))
    return ACCURACY.sub(lambda _: accuracy(), text)


def main() -> None:
    """Write every page whose path holds what was given."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    REFERENCE.touch()
    for page in pages():
        name = str(page.relative_to(ROOT))
        if only in name:
            text = fresh(page)
            if text != page.read_text(encoding="utf-8"):
                page.write_text(text, encoding="utf-8")
                print(name)


def _command(found: re.Match[str]) -> Command:
    settings = dict(part.split("=", 1) for part in shlex.split(found["settings"]))
    return Command(found["command"], settings)


def _verb(name: str, command: Any) -> list[str]:
    usage, groups = [f"gpuplan {name}"], {}
    for param in command.params:
        flags = ", ".join([*param.opts, *param.secondary_opts])
        if param.param_type_name == "argument":
            usage.append(param.name.upper())
            flags = param.name.upper()
        groups.setdefault(group_of(param), []).append(f"| `{flags}` | {_help(param)} |")
    lines = [f"## gpuplan {name}", "", *command.help.strip().splitlines(), ""]
    lines += ["```", " ".join([*usage, "[OPTIONS]"]), "```", ""]
    for group, rows in groups.items():
        lines += [f"**{group}**", "", "| | |", "|---|---|", *rows, ""]
    return lines


def _help(param: Any) -> str:
    default = param.default
    is_shown = default not in (None, False, "", ...) and param.param_type_name == "option"
    value = getattr(default, "value", default)
    text = param.help.replace("|", "\\|").replace("<", "&lt;")
    needed = " Required." if param.required else ""
    return f"{text}{f' Default: {value}.' if is_shown else ''}{needed}"


def _percent(figure: Figures) -> str:
    return f"{100 * figure['median_ape']:.1f} %"


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


if __name__ == "__main__":
    main()

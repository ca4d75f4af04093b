"""How a verb becomes a command: its options are one class, its help shows them in named groups.

Flags under their former names: understood for one release, shown nowhere.
"""

import inspect
import re
from collections.abc import Callable, Container
from enum import StrEnum
from inspect import Parameter
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from gpuplan.errors import InputError, one

LARGEST = 1e15  # a thousand runs on fifteen trillion tokens are fewer
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
OUTPUT = "Output"
# The kind of a value in a letter or a word, as manual pages write it.
KINDS = {
    "int": "N",
    "int range": "N",
    "float": "X",
    "float range": "X",
    "str": "TEXT",
    "path": "FILE",
    "list[Path]": "FILE",
    "list[str]": "TEXT",
}


class Form(StrEnum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    MD = "md"


_running: list[str] = []


def running_verb() -> str:
    """The command that runs, as errors about its files name it."""
    return _running[-1] if _running else "output"


class GroupedCommand(TyperCommand):
    """A command whose help shows options under the headings of their groups."""

    def invoke(self, ctx: Any) -> Any:
        """Run, known by name."""
        _running.append(str(ctx.info_name))
        try:
            _check_numbers(ctx, self.get_params(ctx))
            return super().invoke(ctx)
        finally:
            _running.pop()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Each group in the order in which its first option was declared."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                flags = re.sub(r"<([^<>]*)>", lambda found: _kind(found[1]), record[0])
                groups.setdefault(group_of(param), []).append((flags, record[1]))
        for name, rows in groups.items():
            with formatter.section(name):
                formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Arguments as today's options understand them."""
        known = {flag for param in self.get_params(ctx) for flag in param.opts}
        return super().parse_args(ctx, with_new_names(args, known, is_silent=ctx.resilient_parsing))


def _check_numbers(ctx: Any, params: list[Any]) -> None:
    """No option takes what is no number, or more than anything that is counted or measured."""
    flags = {param.name: param.opts[0] for param in params if param.param_type_name == "option"}
    for name, value in ctx.params.items():
        numbers = value if isinstance(value, list | tuple) else [value]
        for number in numbers:
            if isinstance(number, int | float) and not abs(number) <= LARGEST:
                flag = flags.get(name, name)
                fix = f"give a number up to {LARGEST:g}"
                raise one(InputError, ctx.info_name, flag, f"{number:g} is not allowed", fix)


def group_of(param: Any) -> str:
    """The heading that an option stands under; `--help` closes the list."""
    if param.param_type_name == "argument":
        return "Arguments"
    return getattr(param, "rich_help_panel", None) or OUTPUT


def command_of(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb as a function that typer can read: one parameter for each field of its options.

    A verb that takes the form of its result has --output, and --json for short.
    """
    taken, hints = inspect.signature(verb).parameters, get_type_hints(verb)
    options: Any = hints.get("options")
    own = [p for p in inspect.signature(options or verb).parameters.values() if p.name != "form"]
    own += form_options() if "form" in taken else []

    def command(**given: Any) -> None:
        form = {}
        if "form" in taken:
            typed, is_json = given.pop("output"), given.pop("json")
            form["form"] = Form.JSON if is_json else typed
        verb(**({"options": options(**given)} if options else given), **form)

    command.__doc__ = verb.__doc__
    command.__annotations__ = {p.name: p.annotation for p in own}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own]
    )
    return command


def form_options() -> list[Parameter]:
    """The options that choose the form of a result."""
    form = typer.Option(
        Form.TABLE, "-o", "--output", help="Format of the result on stdout.", rich_help_panel=OUTPUT
    )
    text = "JSON document, short for -o json."
    is_json = typer.Option(False, "--json", help=text, rich_help_panel=OUTPUT)
    return [
        Parameter("output", Parameter.KEYWORD_ONLY, default=form, annotation=Form),
        Parameter("json", Parameter.KEYWORD_ONLY, default=is_json, annotation=bool),
    ]


def group(help_text: str) -> typer.Typer:
    """A group of commands, such as `gpuplan catalog`."""
    return typer.Typer(
        help=help_text, no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )


def add_to(parent: typer.Typer, name: str, verb: Callable[..., None]) -> None:
    """Give a group one more command."""
    settings = {"cls": GroupedCommand, "context_settings": HELP}
    parent.command(name, **settings)(command_of(verb))  # type: ignore[arg-type]


def _kind(shown: str) -> str:
    return KINDS.get(shown, shown)


def with_new_names(args: list[str], known: Container[str], *, is_silent: bool) -> list[str]:
    """The arguments with every former flag replaced, and said so; what follows `--` stays."""
    end = args.index("--") if "--" in args else len(args)
    shown = [_renamed(arg, known, is_silent=is_silent) for arg in args[:end]]
    return shown + args[end:]


def _renamed(arg: str, known: Container[str], *, is_silent: bool) -> str:
    flag, equals, value = arg.partition("=")
    if not flag.startswith("--") or flag in known:
        return arg
    from gpuplan.csv_rows import meanings

    new = meanings("cli", "renamed_flag").get(flag)
    if new is None or new.replace("--no-", "--", 1) not in known:
        return arg
    if not is_silent:
        typer.echo(f"{flag} is now {new}; the next release no longer knows {flag}", err=True)
    return f"{new}{equals}{value}"

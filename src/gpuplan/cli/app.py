"""The program: its commands, and the one place where errors become exit codes.

The table of commands: each is loaded when it is called, so that help loads none of them.
"""

import gc
import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from gpuplan.cli.command import HELP, add_to
from gpuplan.cli.completion import Offer
from gpuplan.cli.streams import drop_output, prepare_streams
from gpuplan.csv_rows import packaged_rows
from gpuplan.errors import InputError, PlannerError, one


class Entry(NamedTuple):
    """Where a verb lives, and the line that help shows."""

    module_and_name: str
    line: str


ROWS = packaged_rows("gpuplan.cli", "data/commands.csv")
GROUPS = {
    group: {row["verb"]: Entry(row["lives"], row["line"]) for row in ROWS if row["group"] == group}
    for group in dict.fromkeys(row["group"] for row in ROWS)
}
COMMANDS = {name: entry for verbs in GROUPS.values() for name, entry in verbs.items()}


class LazyCommands(TyperGroup):
    """A group whose commands are read from the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, loaded now; None where there is none of that name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.module_and_name.partition(":")
        target = getattr(import_module(f"gpuplan.cli.{module}"), attribute)
        if not isinstance(target, typer.Typer):
            alone = typer.Typer(
                rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False
            )
            add_to(alone, cmd_name, target)
            target = alone
        command = typer.main.get_command(target)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that was typed; a typo is answered with the nearest."""
        near = get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Verbs that begin like this; loading them all would make TAB slow."""
        verbs = [
            Offer(name, entry.line)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return verbs or super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list that help shows, without loading a single one."""
        for group, verbs in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, entry.line) for name, entry in verbs.items()])


EXAMPLES = """\
gpuplan plans GPU infrastructure. Try:

  gpuplan plan "Llama-3.3-70B, 6000 users, chat" --html plan.html
  gpuplan fit Llama-3.3-70B --on H100 --precision fp8 --context 16000
  gpuplan fit-training Llama-3.1-8B --on A10G --task qlora
  gpuplan predict Llama-3.3-70B --on 2xH100 --precision fp8 --concurrency 32
  gpuplan scale Llama-3.1-8B --on H100 --node-gbit 3200
  gpuplan init --kind chat

gpuplan --help lists the commands."""

COMPLETION = "_GPUPLAN_COMPLETE"  # what a shell sets when it asks what TAB may offer
RARELY = (500_000, 20, 100)  # objects, young and old rounds between two searches for garbage
ROOM_WORDS = 40_000
LEAST_ADDRESS_BYTES = 512 << 20  # numpy, scipy and LLVM: a small plan needs 500 MiB of it

# Panels and colours in help would cost more start-up than the whole command table.
app = typer.Typer(
    name="gpuplan",
    help="Plan GPU infrastructure for AI: what fits, how fast, at what cost, how certain.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    cls=LazyCommands,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"gpuplan {version('gpuplan')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_print_version, is_eager=True
    ),
) -> None:
    """Plan GPU infrastructure for AI: what fits, how fast, at what cost, how certain."""
    if context.invoked_subcommand is None:
        typer.echo(EXAMPLES)


def _called(run: Callable[[], None]) -> None:
    run()


# Python takes the stack of its frames from the system in pieces of 16 KB, and gives a piece back
# as soon as it is empty: a loop that calls across such an edge spends its time on that. Below a
# frame that claims to need much, the piece is large enough for everything.
_called.__code__ = _called.__code__.replace(co_stacksize=ROOM_WORDS)


def main() -> None:
    """Run, and end with the exit code of what happened."""
    try:
        _called(_run)
    finally:
        # What is left goes with the process: looking for garbage in it once more is in vain.
        gc.freeze()


def _run() -> None:
    prepare_streams()
    if len(sys.argv) == 1 and COMPLETION not in os.environ:
        typer.echo(EXAMPLES)  # without parsing anything: the first answer comes at once
        return
    # Loading makes many lasting objects: looking for garbage among them is in vain.
    gc.set_threshold(*RARELY)
    try:
        _check_address_space()
        app()
    except PlannerError as error:
        _end(str(error), error.exit_code)
    except BrokenPipeError:
        drop_output()  # its reader has gone
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fix = "check the disk, its room and your permissions"
        _end(f"gpuplan: {where}{error.strerror or error}; {fix}", InputError.exit_code, error)
    except Exception as error:  # noqa: BLE001  (the outermost door)
        if _is_out_of_memory(error):
            what = f"gpuplan: not enough memory ({error or 'none is left'})"
            _end(f"{what}; allow more, or ask for less", InputError.exit_code, error)
        what = f"gpuplan: internal error: {type(error).__name__}: {error}"
        _end(f"{what}\n  please report it; GPUPLAN_DEBUG=1 shows the traceback", 1, error)


def _check_address_space() -> None:
    """Under too narrow a limit the libraries abort or wait forever: refused before they load."""
    if sys.platform == "win32":
        return
    import resource  # POSIX alone has it

    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed == resource.RLIM_INFINITY:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread takes room of its own
    if allowed < LEAST_ADDRESS_BYTES:
        what = f"{allowed >> 20} MiB of address space are too few for its libraries"
        raise one(InputError, "gpuplan", "ulimit -v", what, f"allow {LEAST_ADDRESS_BYTES >> 10}")


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out, be it while a library was loaded."""
    return isinstance(error, MemoryError) or "failed to map segment" in str(error)


def _end(what: str, exit_code: int, unforeseen: Exception | None = None) -> None:
    if unforeseen is not None and os.environ.get("GPUPLAN_DEBUG"):
        raise unforeseen
    typer.echo(what, err=True)
    drop_output()
    sys.exit(exit_code)

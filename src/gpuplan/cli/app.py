"""The program: its commands, and the one place where errors become exit codes."""

import gc
import os
import sys
from collections.abc import Callable

import typer

from gpuplan.cli.command import HELP
from gpuplan.cli.commands import LazyCommands
from gpuplan.cli.streams import drop_output, prepare_streams
from gpuplan.errors import InputError, PlannerError

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
        what = f"gpuplan: internal error: {type(error).__name__}: {error}"
        _end(f"{what}\n  please report it; GPUPLAN_DEBUG=1 shows the traceback", 1, error)


def _end(what: str, exit_code: int, unforeseen: Exception | None = None) -> None:
    if unforeseen is not None and os.environ.get("GPUPLAN_DEBUG"):
        raise unforeseen
    typer.echo(what, err=True)
    drop_output()
    sys.exit(exit_code)

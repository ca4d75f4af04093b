"""The table of commands: each is loaded when it is called, so that help loads none of them."""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from gpuplan.cli.completion import Offer


class Entry(NamedTuple):
    """Where a command lives, and the line that help shows."""

    place: str  # module:attribute
    line: str


COMMANDS = {
    "plan": Entry("plan:plan", "What to get, how many, from where, at what cost, and why."),
    "explain": Entry("explain:explain", "Why a plan is as it is, and why not otherwise."),
    "diff": Entry("explain:diff", "What changed between two plans."),
    "report": Entry("explain:report", "A plan as one page to read and send."),
    "check": Entry("check:check", "Is a described system fed, powered, cooled, balanced? A gate."),
    "design": Entry("design:design", "Everything around a plan, and its bill by month."),
    "fit": Entry("fit:fit", "Does a model fit for inference, by how much, how many at once."),
    "fit-training": Entry("fit_training:fit_training", "Does a training job fit, and what helps."),
    "predict": Entry("predict:predict", "Speed, power and memory of one configuration."),
    "predict-table": Entry("predict:predict_table", "Predict every configuration of a table."),
    "predict-network": Entry("predict_network:predict_network", "CNNs, encoders, diffusion …"),
    "predict-training": Entry("predict_training:predict_training", "Step and length of a run."),
    "roofline": Entry("predict:roofline", "What limits prefill and decode."),
    "scale": Entry("validate:scale", "Speed of training over the number of devices."),
    "simulate": Entry("simulate:simulate", "Replay requests against a fleet."),
    "diagnose": Entry("diagnose:diagnose", "What monitoring saw, why, and what helps."),
    "score": Entry("diagnose:score", "Hold telemetry against limits; a gate."),
    "forecast": Entry("forecast:forecast", "Demand ahead, with its record; when to order."),
    "replan": Entry("replan:replan", "A plan against what happened; what to change."),
    "top": Entry("top:top", "A fleet on one screen, live or recorded."),
    "watch": Entry("watch:watch", "Look at Prometheus; publish what it means."),
    "validate": Entry("validate:validate", "Predictions against measured rows."),
    "calibrate": Entry("calibrate:calibrate", "Refit with your own runs."),
    "init": Entry("scenario:init", "Write a commented scenario to start from."),
    "scenario": Entry("scenario:app", "Check a scenario file; print its schema."),
    "catalog": Entry("catalog:app", "List, show, check, overlay and update the facts."),
}


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
        module, _, attribute = entry.place.partition(":")
        target = getattr(import_module(f"gpuplan.cli.{module}"), attribute)
        if not isinstance(target, typer.Typer):
            alone = typer.Typer(
                rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False
            )
            alone.command(cmd_name, context_settings=HELP)(target)
            target = alone
        command = typer.main.get_command(target)
        command.name = cmd_name
        return command

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
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in COMMANDS.items()])


HELP = {"help_option_names": ["-h", "--help"]}

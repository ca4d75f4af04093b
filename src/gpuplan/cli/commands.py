"""The table of commands: each is loaded when it is called, so that help loads none of them."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from gpuplan.cli.command import add_to
from gpuplan.cli.completion import Offer


class Entry(NamedTuple):
    """Where a verb lives, and the line that help shows."""

    module_and_name: str
    line: str


GROUPS = {
    "Plan and design": {
        "plan": Entry(
            "plan:plan", "Plan a fleet: which accelerators, how many, from where, at what cost."
        ),
        "probe": Entry(
            "probe:probe", "Find the short benchmark runs that are worth most to a plan."
        ),
        "explain": Entry("explain:explain", "Explain a plan: why this one, why not the others."),
        "learn": Entry("explain:learn", "Learn from a plan or telemetry: lessons, questions."),
        "verify": Entry("explain:verify", "Verify a plan with an independent checker."),
        "diff": Entry("explain:diff", "Compare two plans."),
        "report": Entry("explain:report", "Write a plan as one self-contained HTML page."),
        "render": Entry(
            "render:render", "Render a plan as files for Kubernetes, engines, Slurm and others."
        ),
        "check": Entry("check:check", "Check a system's bottlenecks, power, cooling and network."),
        "design": Entry(
            "check:design", "Design hosts, network, storage, site and cost around a plan."
        ),
        "init": Entry("scenario:init", "Write a commented scenario to start from."),
        "scenario": Entry("scenario:app", "Check a scenario file; print its JSON Schema."),
    },
    "Fit, predict and simulate": {
        "fit": Entry("fit:fit", "Check whether a model fits in memory for inference."),
        "fit-training": Entry("fit:fit_training", "Check whether a training job fits in memory."),
        "predict": Entry(
            "predict.serving:predict", "Predict throughput, latency, power and memory."
        ),
        "predict-table": Entry(
            "predict.serving:predict_table", "Predict each row of a table (CSV)."
        ),
        "predict-network": Entry(
            "predict.network:predict_network", "Predict CNNs, ViTs, encoders and diffusion models."
        ),
        "predict-training": Entry(
            "predict.training:predict_training", "Predict step time and duration of a training run."
        ),
        "roofline": Entry("predict.serving:roofline", "Show what limits prefill and decode."),
        "scale": Entry("predict.training:scale", "Show training speed-up over the number of GPUs."),
        "eta": Entry("eta:eta", "Estimate when a job would start on a shared cluster."),
        "simulate": Entry(
            "simulate.command:simulate", "Simulate a fleet serving a trace or a load."
        ),
        "sweep": Entry(
            "sweep:sweep", "Run a verb over every combination of options, on cores or on Ray."
        ),
    },
    "Operate": {
        "diagnose": Entry(
            "diagnose:diagnose", "Diagnose telemetry: utilization, waste, causes, actions."
        ),
        "score": Entry("diagnose:score", "Score telemetry against limits, as a CI gate."),
        "forecast": Entry("forecast:forecast", "Forecast demand; say when to order."),
        "replan": Entry("forecast:replan", "Compare a plan with telemetry; plan again."),
        "top": Entry("top:top", "Show a fleet on one screen, live or recorded."),
        "serve": Entry("serve:serve", "Serve every verb over HTTP."),
        "watch": Entry("watch:watch", "Watch Prometheus; serve recommendations as metrics."),
    },
    "Accuracy and facts": {
        "validate": Entry("calibrate:validate", "Validate predictions against measured rows."),
        "calibrate": Entry(
            "calibrate:calibrate", "Calibrate the model with your own benchmark runs."
        ),
        "catalog": Entry("catalog:app", "List, show, check, overlay and update the facts."),
    },
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

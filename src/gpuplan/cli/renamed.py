"""Flags under their former names: understood for one release, shown nowhere."""

from collections.abc import Container

import typer

RENAMED = {
    "--acceptance": "--acceptance-rate",
    "--accumulate": "--gradient-accumulation-steps",
    "--counts": "--devices",
    "--cross": "--cross-validate",
    "--curve": "--sweep-replicas",
    "--every-s": "--interval-s",
    "--gaps": "--itl",
    "--hours": "--horizon-h",
    "--hybrid": "--hsdp",
    "--image": "--image-size",
    "--input": "--input-tokens",
    "--lengths": "--length-distribution",
    "--long-prefill-tokens": "--long-prefill-token-threshold",
    "--looks": "--iterations",
    "--max-batch": "--max-batch-size",
    "--max-delay-ms": "--max-queue-delay-ms",
    "--max-peak": "--max-peak-utilization",
    "--memory-use": "--gpu-memory-utilization",
    "--min-mean": "--min-mean-utilization",
    "--no-cross": "--no-cross-validate",
    "--no-hybrid": "--no-hsdp",
    "--page": "--html",
    "--per-node": "--devices-per-node",
    "--preferred-batch": "--preferred-batch-size",
    "--prefix-hit": "--prefix-cache-hit-rate",
    "--scheduling": "--scheduling-policy",
    "--sequence": "--seq-length",
    "--speculative-tokens": "--num-speculative-tokens",
    "--think-s": "--think-time-s",
    "--ways": "--rent-or-buy",
}


def with_new_names(args: list[str], known: Container[str], *, is_silent: bool) -> list[str]:
    """The arguments with every former flag replaced, and said so; what follows `--` stays."""
    end = args.index("--") if "--" in args else len(args)
    shown = [_renamed(arg, known, is_silent=is_silent) for arg in args[:end]]
    return shown + args[end:]


def _renamed(arg: str, known: Container[str], *, is_silent: bool) -> str:
    flag, equals, value = arg.partition("=")
    new = RENAMED.get(flag)
    if new is None or flag in known or new.replace("--no-", "--", 1) not in known:
        return arg
    if not is_silent:
        typer.echo(f"{flag} is now {new}; the next release no longer knows {flag}", err=True)
    return f"{new}{equals}{value}"

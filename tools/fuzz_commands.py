"""Drawn command lines for every verb: each is answered or refused, soon, and never by exit code 1.

    python tools/fuzz_commands.py --minutes 10 [--only VERB …] [--seed 0] [--first 0] [--lines 3000]

A command line is a verb with arguments that work, and up to four of its options with values that
people type, mistype or try on purpose. Lines are run in this process, one after the other, with
limits of CPU time and memory; one that ends with exit code 1, does not end, or prints JSON that is
not JSON (a NaN among it) is printed with its number. Seed and number draw the same line again.
The summary is printed at the end of the time, after so many lines, or on Ctrl-C.
"""

import argparse
import contextlib
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import typer
import yaml
from typer.core import TyperOption

from gpuplan.cli.app import COMMANDS, app
from gpuplan.errors import PlannerError

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, DATA = ROOT / "examples", ROOT / "examples" / "data"
CLUSTER = EXAMPLES / "clusters"
HUNG_S, SLOW_S, MAX_BYTES = 120, 40.0, 8 << 30
SENTENCE = "Llama-3.1-8B on H100, 100 users, chat"
PLAN = "{plan}"  # a plan file of the run's own
WORKING: dict[str, list[list[str]]] = {
    "plan": [
        [SENTENCE, "--samples", "0"],
        ["fine-tune Llama-3.1-8B with LoRA on 5M tokens in 2 days", "--samples", "0"],
        ["Llama-3.1-8B summarise 2M documents in a week on L40S", "--samples", "0"],
        *([str(path), "--samples", "0"] for path in sorted(EXAMPLES.glob("*.yaml"))),
        [SENTENCE, "--samples", "0", "--largest-load"],
        [str(EXAMPLES / "chat.yaml"), "--samples", "0", "--largest-load"],
    ],
    **{verb: [[PLAN]] for verb in ("explain", "verify", "learn", "report", "design", "probe")},
    "diff": [[PLAN, PLAN]],
    "render": [[PLAN, "--to", "kubernetes"], [PLAN, "--to", "vllm"]],
    "check": [[str(EXAMPLES / "power-shortfall.yaml")], [str(EXAMPLES / "slow-disks.yaml")]],
    "init": [["--kind", "chat"]],
    "fit": [["Llama-3.1-8B", "--on", "H100"], ["deepseek-v3", "--on", "8xH200"]],
    "fit-training": [["Llama-3.1-8B", "--on", "8xA100"]],
    "predict": [["Llama-3.1-8B", "--on", "H100", "--concurrency", "8"], ["qwen3-30b-a3b"]],
    "predict-network": [["resnet50", "--on", "A100"], ["whisper-large-v3", "--on", "L4"]],
    "predict-training": [["Llama-3.1-8B", "--on", "H100", "--devices", "16"]],
    "roofline": [["Llama-3.1-8B", "--on", "H100"]],
    "scale": [["Llama-3.1-8B", "--on", "H100", "--node-gbit", "400"]],
    "eta": [[str(CLUSTER / "six-teams.yaml"), "--jobs", str(CLUSTER / "six-teams.csv")]],
    "simulate": [
        [str(CLUSTER / "six-teams.yaml"), "--jobs", str(CLUSTER / "six-teams.csv")],
        ["--model", "Llama-3.1-8B", "--on", "H100", "--rate", "2", "--duration", "60"],
        ["--model", "Llama-3.1-8B", "--on", "H100", "--trace", str(DATA / "requests.csv")],
    ],
    "diagnose": [[str(DATA / "telemetry.csv")], [str(DATA / "service.json")]],
    "score": [[str(DATA / "telemetry.csv")]],
    "forecast": [[str(DATA / "telemetry.csv"), "--devices", "4"]],
    "replan": [[PLAN, str(DATA / "service.json")]],
    "validate": [[str(DATA / "my_runs.csv")]],
    "calibrate": [[str(DATA / "my_runs.csv")]],
    "sweep": [[str(DATA / "sweep.yaml"), "--workers", "1", "--store", "finished"]],
}
NUMBERS = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "0.5",
    "1e-9",
    "1e9",
    "1e18",
    "1e308",
    "nan",
    "inf",
    "-inf",
]
NUMBERS += ["9" * 30, "16", "100", "1000000", "0x10", "1_000", "1,5", "", " ", "½", "1e", "--5"]
TEXTS = [
    "",
    " ",
    "x",
    "H100",
    "8xH100",
    "0xH100",
    "-3xH100",
    "h100:2",
    "fp8",
    "int1",
    "fp4",
    "bf16",
]
TEXTS += [
    "a=b",
    "=",
    "a=",
    "workloads[0].model=x",
    "workloads[9].name=1",
    "é\u202e",
    "\x1b[31m",
    "..",
    "/",
]
TEXTS += [
    "nowhere.yaml",
    "/dev/null",
    "vllm",
    "sglang",
    "trtllm",
    "on_demand",
    "DEU",
    "2026-02-30",
    "now",
]
TEXTS += [
    "1:2",
    "mon-fri",
    "24",
    "10%",
    "1-2",
    "1,2,3",
    "llama3.1:8b",
    "no-such-model",
    "tpu-v5e",
    "cpu",
]


REFUSED = typer.BadParameter.__mro__[2]  # what every complaint of the command line is


class HungError(BaseException):
    """A command line that does not end."""


class Outcome(NamedTuple):
    """How a command line ended."""

    exit_code: int
    what: str
    cpu_s: float


def options_of(verb: str) -> list[TyperOption]:
    """The options that may be drawn: none that starts a server or loads from a network."""
    command = typer.main.get_command(app).get_command(None, verb)
    found = [each for each in command.params if isinstance(each, TyperOption)]
    barred = {"help", "html", "out", "address", "state", "listen", "store"}
    return [each for each in found if each.name not in barred]


def drawn(verb: str, options: list[TyperOption], draw: random.Random, plan: str) -> list[str]:
    """One command line of a verb."""
    words = [word.replace(PLAN, plan) for word in draw.choice(WORKING[verb])]
    for option in draw.sample(options, min(len(options), draw.choice((1, 1, 2, 3, 4)))):
        words += _with_value(option, draw)
    if words[0].endswith(".yaml") and draw.random() < 0.7:
        words[0] = spoiled(Path(words[0]), draw)
    if draw.random() < 0.4:
        words += ["-o", draw.choice(("json", "yaml", "csv", "md"))]
    if draw.random() < 0.1 and words:
        words[draw.randrange(len(words))] = draw.choice(TEXTS)
    return [verb, *words]


def spoiled(path: Path, draw: random.Random) -> str:
    """A copy of a file in which one to three values are others, or gone."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for _ in range(draw.choice((1, 1, 2, 3))):
        holder, key = draw.choice(list(_leaves(document)))
        if draw.random() < 0.15:
            del holder[key]
        else:
            holder[key] = _other(holder[key], draw)
    copy = Path(f"spoiled-{path.name}")
    copy.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(copy)


def _leaves(node: Any) -> Iterator[tuple[Any, Any]]:
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in pairs:
        if isinstance(value, dict | list) and value:
            yield from _leaves(value)
        yield node, key


def _other(value: object, draw: random.Random) -> object:
    if isinstance(value, bool) or draw.random() < 0.1:
        return draw.choice((True, False, None, "", [], {}, "x", -1))
    if isinstance(value, int | float):
        scaled = value * draw.choice((0, -1, 0.01, 0.1, 0.5, 2, 10, 100, 1e6, 1e12))
        return draw.choice((scaled, int(scaled), draw.choice((0, 1, 1e-9, 1e18, 0.999, 1e308))))
    return draw.choice(TEXTS)


def _with_value(option: TyperOption, draw: random.Random) -> list[str]:
    name = draw.choice([*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return [name]
    kind = option.type_descriptor.annotation
    choices = get_args(getattr(kind, "__value__", kind))
    if choices and all(isinstance(each, str) for each in choices) and draw.random() < 0.9:
        return [name, draw.choice(choices)]
    bounds = [f"{bound:g}" for bound in (option.min, option.max) if bound is not None]
    pool = [*NUMBERS, *bounds] if kind in (int, float) or bounds else [*TEXTS, *NUMBERS]
    return [name, draw.choice(pool)]


def outcome(words: list[str]) -> Outcome:
    """The line, run to its end."""
    out, err = io.StringIO(), io.StringIO()
    begun_s = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, HUNG_S)
    code, what = 0, ""
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            app(words, standalone_mode=False)
    except (PlannerError, REFUSED) as error:
        code, what = error.exit_code, str(error)
    except (SystemExit, typer.Exit) as error:
        code = int(getattr(error, "code", None) or getattr(error, "exit_code", 0) or 0)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except OSError as error:
        code, what = 2, str(error)
    except HungError:
        code, what = 1, f"not done after {HUNG_S} CPU-s"
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what we look for)
        code, what = 1, f"{type(error).__name__}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    cpu_s = time.process_time() - begun_s
    if code == 0 and words[-1] == "json" and out.getvalue().strip():
        what = _bad_json(out.getvalue())
        code = 1 if what else 0
    if "\x1b" in what:
        return Outcome(1, "an escape sequence in an error", cpu_s)
    return Outcome(code, what, cpu_s)


def _bad_json(text: str) -> str:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return f"JSON that is none: {error}"
    return ""


def _on_time(*_: object) -> None:
    raise HungError


def is_failure(found: Outcome) -> bool:
    """Our fault: an unforeseen end, no end in time, or JSON that nobody can read."""
    return found.exit_code == 1 or found.cpu_s > SLOW_S


def search(asked: argparse.Namespace, plan: str) -> int:
    """Lines of all verbs in turn for the time asked; the number of failures."""
    verbs = asked.only or list(WORKING)
    options = {verb: options_of(verb) for verb in verbs}
    end_s, number, failures = time.process_time() + 60 * asked.minutes, asked.first, 0
    last = asked.first + -(-asked.lines // len(verbs))
    with contextlib.suppress(KeyboardInterrupt):
        while time.process_time() < end_s and number < last:
            for verb in verbs:
                draw = random.Random(f"{asked.seed} {verb} {number}")
                failures += _fails(number, drawn(verb, options[verb], draw, plan))
            number += 1
    n_lines = (number - asked.first) * len(verbs)
    print(f"{n_lines} command lines of {len(verbs)} verbs, {failures} failures")
    return failures


def _fails(number: int, words: list[str]) -> bool:
    """Whether a line ends by our fault; then it is printed."""
    found = outcome(words)
    if is_failure(found):
        line = " ".join(map(repr, words))
        print(f"{number} {found.exit_code} {found.cpu_s:.1f} s {line}: {found.what}", flush=True)
    return is_failure(found)


def main() -> int:
    """Exit code 1 where a line ended by our fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="CPU time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--lines", type=int, default=10**9, help="command lines at most")
    parser.add_argument("--only", action="append", choices=COMMANDS)
    asked = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _on_time)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        plan = str(Path(folder) / "plan.yaml")
        app(["plan", SENTENCE, "--samples", "0", "--out", plan], standalone_mode=False)
        return 1 if search(asked, plan) else 0


if __name__ == "__main__":
    sys.exit(main())

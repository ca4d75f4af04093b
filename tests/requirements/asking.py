"""Commands as a user types them, run in this process, each once; files beside them."""

import json
import os
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from fakes.telemetry import Scene
from golden.cases import _fixed_day
from gpuplan.errors import PlannerError
from shared_data import ROOT


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout; a command without one has failed."""
        assert self.out.strip(), self.err
        return json.loads(self.out)


class Workplace:
    """A scratch folder with the examples in it; every command runs there, and runs once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[str, Answer] = {}
        if not (folder / "examples").exists():
            (folder / "examples").symlink_to(ROOT / "examples")

    def run(self, command: str) -> Answer:
        """The answer to a command, with or without the word gpuplan before it."""
        words = shlex.split(command.removeprefix("gpuplan "))
        key = shlex.join(words)
        if key not in self.answers:
            self.answers[key] = _invoke(words, self.folder)
        return self.answers[key]


class Ask:
    """What a check is given: its own command, others, and files to write."""

    def __init__(self, place: Workplace, command: str) -> None:
        self.place, self.command = place, command

    def __call__(self, command: str = "") -> Answer:
        """The answer to the check's own command, or to another."""
        return self.place.run(command or self.command)

    def document(self, command: str = "") -> Any:
        """The same as a JSON document."""
        return self((command or self.command) + " --json").document

    def write(self, name: str, text: str) -> str:
        """A file in the folder in which commands run."""
        (self.place.folder / name).write_text(text, encoding="utf-8")
        return name

    def read(self, name: str) -> str:
        """A file that a command wrote."""
        return (self.place.folder / name).read_text(encoding="utf-8")

    def exists(self, name: str) -> bool:
        """Whether a command wrote it."""
        return (self.place.folder / name).exists()

    def scenario(self, name: str, content: dict[str, Any]) -> str:
        """A scenario file."""
        return self.write(name, yaml.safe_dump({"version": 1, **content}, sort_keys=False))

    def scene(self, name: str, scene: Scene) -> str:
        """Telemetry as a Prometheus server answers it."""
        data = {"resultType": "matrix", "result": scene.result}
        return self.write(name, json.dumps({"status": "success", "data": data}))

    def table(self, name: str, values: list[float], *, step_min: float = 1.0) -> str:
        """The documents' table of two columns: minutes and percent."""
        rows = [f"{i * step_min:g} | {value:g}" for i, value in enumerate(values)]
        return self.write(name, "\n".join(["Time (min) | GPU Utilization (%)", *rows, ""]))

    def plan(self, example: str, *settings: str) -> Any:
        """The plan of an example, changed by settings; also written as NAME.plan.yaml."""
        words = [f"plan examples/{example}.yaml --samples 0"]
        words += [f"--set {shlex.quote(one)}" for one in settings]
        if not settings:
            words.append(f"--out {example}.plan.yaml")
        return self.document(" ".join(words))

    def checked(self, example: str, **changes: object) -> Any:
        """The check of an example after these changes; `__` stands for a dot, `_0_` for [0]."""
        words = [f"check examples/{example}.yaml"]
        for key, value in changes.items():
            path = key.replace("_0_", "[0]").replace("__", ".")
            words.append(f"--what-if {shlex.quote(f'{path}={value}')}")
        found = self.document(" ".join(words))
        return found["after"] if changes else found


def _invoke(words: list[str], folder: Path) -> Answer:
    from gpuplan.cli.app import app  # noqa: PLC0415

    with _fixed_day(), _inside(folder), warnings.catch_warnings():
        done = CliRunner().invoke(app, words)
    if isinstance(done.exception, PlannerError):
        return Answer(done.exception.exit_code, done.stdout, str(done.exception))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Answer(done.exit_code, done.stdout, done.stderr)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)

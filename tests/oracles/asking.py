"""An engine in an environment of its own, asked stream by stream; its answers are kept.

Answers do not depend on this package: a check that was ended goes on where it was, and a change of
the simulator is held to all that is known without driving the engine again.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def key_of(case: Case) -> str:
    """Equal cases have equal keys."""
    return hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:24]


def note(page: Path, version: str, counts: dict[str, int]) -> None:
    """What was found is what the page of validation says of the version."""
    known = json.loads(page.read_text()) if page.exists() else {}
    page.write_text(json.dumps(known | {version: counts}, indent=1) + "\n")


def fresh_rows(page: Path) -> str:
    """Rows of a table: what fresh streams gave, by version."""
    return "\n".join(
        f"| {version} | {one['streams']:,} | {one['differ']:,} | {one['requests']:,} |"
        for version, one in sorted(json.loads(page.read_text()).items(), reverse=True)
    )


class Engine:
    """A process that answers a line with a line; it begins with the first stream not known yet."""

    def __init__(self, command: Sequence[str], *, path: Path | None, kept: Path | None) -> None:
        self.command, self.accepted = list(command), kept
        given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.environment = given | ({} if path is None else {"PYTHONPATH": str(path)})
        self.known: dict[str, Any] = {}
        self.process: subprocess.Popen[str] | None = None
        if kept is not None and kept.exists():
            for line in kept.read_text().splitlines():
                one = json.loads(line)
                self.known[one["key"]] = one["answer"]

    @property
    def version(self) -> str:
        """As the engine says it."""
        return str(self.answer({}))

    def answer(self, case: Case) -> Any:
        """What the engine makes of the stream; of an empty one, its version."""
        key = key_of(case)
        if key not in self.known:
            self.known[key] = self._ask(case)
            if self.accepted is not None:
                with self.accepted.open("a") as file:
                    file.write(json.dumps({"key": key, "answer": self.known[key]}) + "\n")
        return self.known[key]

    def _ask(self, case: Case) -> Any:
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=pipe, stdout=pipe,
                stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        asked, told = self.process.stdin, self.process.stdout
        assert asked is not None
        assert told is not None
        asked.write(json.dumps(case) + "\n")
        asked.flush()
        line = told.readline()
        if not line:
            raise RuntimeError(f"the engine ended: {' '.join(self.command)}")
        return json.loads(line)

    def close(self) -> None:
        """The engine is no longer needed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

"""The program as a shell runs it, under conditions that a test chooses."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "gpuplan"]
SENTENCE = "Llama-3.1-8B on H100, 100 users, chat"


def environment(**changes: str) -> dict[str, str]:
    """The usual one with the source of this tree, and changes."""
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "0"} | changes


def gpuplan(*arguments: object, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """A run to its end; `env` holds changes to the environment."""
    env = environment(**settings.pop("env", {}))
    usual: dict[str, Any] = {"timeout": 300, "env": env}
    if not settings.keys() & {"stdout", "stderr", "capture_output"}:
        usual["capture_output"] = True
    return subprocess.run([*PROGRAM, *map(str, arguments)], check=False, **(usual | settings))

"""Functions that a fresh process can find, for what runs on several."""

import os

from gpuplan.errors import InputError, Problem


def scaled(factor: float, case: int) -> tuple[float, int]:
    return sum(factor / k for k in range(1, case + 2)), case


def process(_: None, case: int) -> int:
    return os.getpid()


def fails(_: None, case: int) -> int:
    raise InputError("case", [Problem("here", f"case {case}", "another")])

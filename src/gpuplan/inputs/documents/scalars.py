"""What an unquoted word of a YAML file means; words that readers disagree on are refused.

YAML 1.1 and 1.2 read `no`, `010` and `1:30` differently, so we read none of them.
"""

import math
import re
from typing import NamedTuple

MAX_NUMBER_CHARS = 40

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_LOOSE_TRUTH = re.compile(r"(?i:yes|no|on|off)")
_NOT_FINITE = re.compile(r"[-+]?\.?(?i:inf|infinity|nan)")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(_[0-9]{3})+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ODD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+)")


class Scalar(NamedTuple):
    """A value, or a complaint with what to write in its place."""

    value: object
    what: str = ""
    fix: str = ""


def resolve(text: str) -> Scalar:
    """The value of an unquoted word."""
    if text in NULLS:
        return Scalar(None)
    if text in TRUTHS:
        return Scalar(TRUTHS[text])
    return _refuse(text) or _number(text) or Scalar(text)


def _refuse(text: str) -> Scalar | None:
    if _LOOSE_TRUTH.fullmatch(text):
        fix = f'write true or false, or "{text}" in quotes where it is a word'
        return Scalar(None, f"got {text}, which readers take for a word or for a truth value", fix)
    if _NOT_FINITE.fullmatch(text):
        return Scalar(None, f"got {text}", "must be a finite number; leave the key out if unknown")
    if _SEXAGESIMAL.fullmatch(text):
        what = f"got {shorten(text)}, which some readers take for a number in base 60"
        return Scalar(None, what, "write one number in the unit of the key, e.g. 90 for 1:30")
    if _ODD_NUMBER.fullmatch(text):
        what = f"got {shorten(text)}, which readers take for different numbers"
        return Scalar(None, what, "write it in decimal, without leading zeros")
    return None


def _number(text: str) -> Scalar | None:
    is_integer = _INTEGER.fullmatch(text) is not None
    if not is_integer and not _FLOAT.fullmatch(text):
        return None
    if len(text) > MAX_NUMBER_CHARS:
        what = f"got a number of {len(text)} characters"
        return Scalar(None, what, f"use at most {MAX_NUMBER_CHARS}, e.g. 1.5e12")
    if is_integer:
        return Scalar(int(text))
    value = float(text)
    if math.isinf(value):
        return Scalar(None, f"got {text}", "must be a number that a computer can hold")
    return Scalar(value)


def shorten(text: str, limit: int = 40) -> str:
    """The text, or its beginning where it is long."""
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""The guard before every reader of telemetry: what a foreign file or server can do to a parser."""

import csv
import json
import math
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gpuplan.errors import InputError, PlannerError, one, printable

LATEST_S = 1e11  # the year 5138: whatever is later, or is no number, is no time
MAX_LABEL = 256
MAX_CELL = 1_000_000
# What broken bytes, cells and structures end in; everything else is a fault of the program.
_VALUES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
BROKEN = (*_VALUES, EOFError, OSError, csv.Error, tarfile.TarError, zlib.error)


@contextmanager
def guarded(source: str) -> Iterator[None]:
    """Reading whatever somebody else wrote: it is read, or refused with a reason."""
    usual = csv.field_size_limit(MAX_CELL)
    try:
        yield
    except PlannerError:
        raise
    except BROKEN as error:
        raise _refused(source, error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        raise _refused(source, error) from error
    finally:
        csv.field_size_limit(usual)  # the limit is everybody's: other readers keep theirs


def _refused(source: str, error: BaseException) -> PlannerError:
    why = printable(str(error).partition("\n")[0][:120])
    what = f"cannot be read ({type(error).__name__}: {why})"
    return one(InputError, source, "telemetry", what, "is it whole, and of a known format?")


def json_document(text: str | bytes) -> Any:
    """A JSON document; numbers of any length, ValueError where it is none or too deep."""
    try:
        return json.loads(text, parse_int=_number)
    except RecursionError:
        raise ValueError("lists or objects within each other too deep") from None


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float(digits)


def is_time(at_s: float) -> bool:
    """Whether a number can be an instant."""
    return math.isfinite(at_s) and abs(at_s) <= LATEST_S


def number(value: object) -> float:
    """A number as servers write it, or NaN."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def clean(text: object) -> str:
    """Text from outside: on one line, of sane length, with nothing that a terminal obeys."""
    found = text if isinstance(text, str) else str(text)
    found = found if len(found) <= MAX_LABEL else found[: MAX_LABEL - 1] + "…"
    return printable(found)


def mapping(value: object) -> Mapping[str, Any]:
    """An object of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> list[Any]:
    """A list of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []

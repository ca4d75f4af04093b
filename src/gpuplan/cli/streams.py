"""Standard streams as a program finds them: closed, in an old encoding, or without colours."""

import codecs
import contextlib
import io
import os
import sys
import warnings
from typing import Any

# Signs that an encoding may lack, in letters that every encoding has.
PLAIN_SIGNS = dict(zip("×–—−─━│·•µ█╱“”‘’\u00a0\u202f", "x-----|.*u#/\"\"''  ", strict=True)) | {
    "…": "...",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "≈": "~",
    "±": "+-",
    "°": " deg ",
    "€": "EUR",
    "✓": "ok",
    "²": "^2",
    "³": "^3",
    "½": "1/2",
}
HANDLER = "gpuplan-plain"


class Remarks(io.TextIOWrapper):
    """Standard error: what it has no room for, or may not write, costs nobody the result."""

    def write(self, text: str) -> int:
        """Write what can be written."""
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what can be flushed."""
        with contextlib.suppress(OSError):
            super().flush()


def prepare_streams() -> None:
    """Make stdout and stderr take every text; what is closed swallows what is written to it."""
    _occupy()
    if not os.environ.get("COLUMNS", "0").strip("0"):
        os.environ.pop("COLUMNS", None)  # no width is none stated, or tables would be empty
    codecs.register_error(HANDLER, _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)
    if isinstance(sys.__stderr__, io.TextIOWrapper) and sys.stderr is sys.__stderr__:
        code, buffer = sys.stderr.encoding, sys.stderr.buffer
        sys.stderr = Remarks(buffer, encoding=code, errors=HANDLER, line_buffering=True)
    warnings.showwarning = _show_warning


def drop_output() -> None:
    """Nobody reads stdout any more, or it has no room: Python would complain again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _occupy() -> None:
    """Open closed numbers below 3, or the next file opened would be taken for a stream."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(PLAIN_SIGNS.get(sign, "?") for sign in found), error.end


def _show_warning(message: Any, category: type[Warning], *_: object, **__: object) -> None:
    """One line, as every other remark."""
    print(f"gpuplan: {message}", file=sys.stderr)  # noqa: T201

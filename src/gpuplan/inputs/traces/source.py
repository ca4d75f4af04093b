"""The text of a file that somebody else wrote: unpacked, line by line, within limits."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, cast

from gpuplan.errors import InputError, PlannerError, one

MAX_LINE_CHARS = 8_000_000
MAX_DOCUMENT_CHARS = 400_000_000
N_HEAD_CHARS = 1_048_576
N_PIECE_CHARS = 1_048_576
GZIP = b"\x1f\x8b"
PACKED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
WIDE = (b"\xff\xfe", b"\xfe\xff")


def fault(path: Path, what: str, fix: str) -> PlannerError:
    """An error about the file as a whole."""
    return one(InputError, "trace", str(path), what, fix)


def first_bytes(path: Path, n: int = 8) -> bytes:
    """The first bytes of the file, which show its format."""
    try:
        if path.is_dir():
            raise fault(path, "is a folder", "give one of its files")
        with path.open("rb") as file:
            return file.read(n)
    except (OSError, ValueError) as error:
        raise fault(path, f"cannot be read: {_why(error)}", "give a file that exists") from None


@contextmanager
def text_of(path: Path) -> Iterator[IO[str]]:
    """The file as text, unpacked; faults of reading become InputError."""
    begin = first_bytes(path)
    for magic, name in PACKED.items():
        if begin.startswith(magic):
            raise fault(path, f"is packed with {name}", "unpack it, or pack it with gzip")
    if begin.startswith(WIDE):
        raise fault(path, "is UTF-16", "save it as UTF-8")
    try:
        opener = gzip.open if begin.startswith(GZIP) else open
        packed = opener(path, "rb")
        # A wrong byte becomes a mark that no number has: its line is bad, others are not.
        with TextIOWrapper(
            cast("IO[bytes]", packed), "utf-8-sig", errors="replace", newline=""
        ) as text:
            yield text
    except (OSError, EOFError, zlib.error) as error:
        raise fault(path, f"cannot be read to its end: {_why(error)}", "fetch it again") from None


def lines_of(path: Path, text: IO[str]) -> Iterator[str]:
    """Each line without its end; InputError for what is no text."""
    number, rest = 0, ""
    while piece := text.read(N_PIECE_CHARS):
        if "\x00" in piece:
            what = f"holds binary data after line {number}"
            raise fault(path, what, "give CSV, JSON lines or Parquet")
        # Other signs that end lines elsewhere may stand inside a cell.
        *lines, rest = (rest + piece).split("\n")
        number += len(lines)
        if max(map(len, (rest, *lines))) > MAX_LINE_CHARS:
            what = f"has a line of more than {MAX_LINE_CHARS:,} characters before line {number + 2}"
            raise fault(path, what, "write one request per line")
        yield from [line.removesuffix("\r") for line in lines] if "\r" in piece else lines
    if rest:
        yield rest


def head_of(path: Path) -> str:
    """How the text begins: enough for a header and the first requests."""
    with text_of(path) as text:
        head = text.read(N_HEAD_CHARS)
    if "\x00" in head:
        raise fault(path, "holds binary data", "give CSV, JSON lines or Parquet")
    return head


def document_of(path: Path) -> str:
    """All of the text, within the limit for files that must be read whole."""
    with text_of(path) as text:
        whole = text.read(MAX_DOCUMENT_CHARS + 1)
    if len(whole) > MAX_DOCUMENT_CHARS:
        what = f"is one JSON document of more than {MAX_DOCUMENT_CHARS:,} characters"
        raise fault(path, what, "write one request per line")
    return whole


def _why(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(reason)[:120]

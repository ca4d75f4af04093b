"""One careful writer for every file: whole or not at all, and nothing but the file is touched.

Files appear by rename: a reader sees the old file or the new one, never a part of one. What a
name points to stays what it is: a link stays a link to the file that is replaced, a device, pipe
or socket is written into. Whatever fails, no other file is left behind. Errors are OSErrors; who
asked for the file says what they mean.
"""

import contextlib
import errno
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LEFTOVER_S = 3600.0  # after so long, a part belongs to a run that was killed
NEW_FILE_MODE = 0o666


def write_file(path: Path, content: bytes, *, is_lasting: bool = False) -> None:
    """Make this the content of the file in one step; on any failure the old content stays.

    A lasting file is on the disk before the old one is gone: it survives a power cut.
    """
    with whole_file(path, is_lasting=is_lasting) as part:
        part.write_bytes(content)


@contextlib.contextmanager
def whole_file(path: Path, *, is_lasting: bool = False) -> Iterator[Path]:
    """A path to write to, which becomes the file when all is written."""
    target = Path(os.path.realpath(path))
    if _is_stream(target):
        with tempfile.TemporaryDirectory(prefix="gpuplan-") as folder:
            part = Path(folder) / target.name
            yield part
            _pour(part, target)
        return
    number, name = tempfile.mkstemp(
        prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent
    )
    os.close(number)
    part = Path(name)
    try:
        yield part
        part.chmod(_mode(target))
        if is_lasting:
            _sync(part)
        part.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    if is_lasting:
        with contextlib.suppress(OSError):  # not every system syncs folders
            _sync(target.parent)
    _clear_leftovers(target)


def why_not_writable(path: Path) -> str:
    """What would keep the file from being written, as far as can be said beforehand; "" if none."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            return os.strerror(errno.EISDIR)
        if _is_stream(target):
            return "" if os.access(target, os.W_OK) else os.strerror(errno.EACCES)
        if not target.parent.is_dir():
            return os.strerror(errno.ENOTDIR if target.parent.exists() else errno.ENOENT)
    except (OSError, ValueError) as error:  # a name that no file can have
        return getattr(error, "strerror", None) or str(error)
    return "" if os.access(target.parent, os.W_OK) else os.strerror(errno.EACCES)


def _is_stream(target: Path) -> bool:
    """Whether it is there and is neither a file nor a folder."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    return not stat.S_ISREG(mode)


def _pour(part: Path, target: Path) -> None:
    """The whole content into what is there already; a pipe waits for its reader."""
    with part.open("rb") as content, target.open("wb", buffering=0) as stream:
        while chunk := content.read(2**16):
            left = memoryview(chunk)
            while left:
                left = left[stream.write(left) or 0 :]


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of any new file."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return NEW_FILE_MODE & ~mask


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _clear_leftovers(target: Path) -> None:
    """Remove what runs that were killed left beside the file; a run under way is younger."""
    head = f".{target.name[:100]}."
    for each in os.scandir(target.parent):
        if each.name.startswith(head) and each.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if time.time() - each.stat().st_mtime > LEFTOVER_S:
                    Path(each.path).unlink()

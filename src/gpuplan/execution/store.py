"""Finished results on disk, each under the digest of all that it was computed from.

Writing is whole or not at all, so a run that was killed leaves finished results only, and the next
run repeats none of them. A damaged file is no result: it is computed again.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from gpuplan.files import write_file


def digest_of(value: object) -> str:
    """One name for a value of plain data, the same in every process."""
    return sha256(canonical(value)).hexdigest()


def canonical(value: object) -> bytes:
    """Plain data as bytes: equal values, equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


class ResultStore:
    """A folder of results by digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: str) -> Path:
        """Where the result lies, or would."""
        return self._folder / digest[:2] / f"{digest}.json"

    def has(self, digest: str) -> bool:
        """Whether it is finished, and sound."""
        return self.read(digest) is not None

    def read(self, digest: str) -> Any | None:
        """The result; None where there is none, or where its file is damaged."""
        try:
            seal, _, body = self.path(digest).read_bytes().partition(b"\n")
        except OSError:
            return None
        if seal != sha256(body).hexdigest().encode():
            return None
        return json.loads(body)

    def write(self, digest: str, result: object) -> None:
        """Keep a finished result."""
        path, body = self.path(digest), canonical(result)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, sha256(body).hexdigest().encode() + b"\n" + body)

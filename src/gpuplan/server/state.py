"""What a watch keeps on disk: written whole or not at all, read with suspicion."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuplan.domain.telemetry.watching import WatchPoint

VERSION = 1


def read_state(path: Path | None) -> tuple[tuple[WatchPoint, ...], str]:
    """The past, and what was wrong with the file; a spoiled file is set aside, not overwritten."""
    if path is None or not path.exists():
        return (), ""
    try:
        document = json.loads(path.read_text())
        points = tuple(
            WatchPoint(at_s=float(at), n_demand=float(n), metric=str(metric))
            for at, n, metric in document["points"]
        )
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']}")
    except (ValueError, KeyError, TypeError) as error:
        spoiled = path.with_suffix(path.suffix + ".spoiled")
        path.replace(spoiled)
        return (), f"{path} could not be read ({error}); it is kept as {spoiled}"
    return points, ""


def write_state(path: Path | None, points: Sequence[WatchPoint]) -> None:
    """The past, whole: a crash leaves the file of before."""
    if path is None:
        return
    document = {
        "version": VERSION,
        "points": [[point.at_s, point.n_demand, point.metric] for point in points],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w") as stream:
        json.dump(document, stream)
    Path(name).replace(path)

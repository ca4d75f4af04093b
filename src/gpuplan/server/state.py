"""What a watch keeps on disk: written whole or not at all, read with suspicion."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from gpuplan.domain.telemetry.monitoring import WatchPoint
from gpuplan.files import write_file

VERSION = 1


def read_state(path: Path | None) -> tuple[tuple[WatchPoint, ...], str]:
    """The past, and what was wrong with the file; a spoiled file is set aside, not overwritten."""
    if path is None or not path.exists():
        return (), ""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        points = tuple(
            WatchPoint(at_s=float(at), n_demand=float(n), metric=str(metric))
            for at, n, metric in document["points"]
        )
        if not all(math.isfinite(point.at_s + point.n_demand) for point in points):
            raise ValueError("a number that is none")
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']}")
    except OSError as error:
        return (), f"{path} cannot be read ({error.strerror or error})"
    except (ValueError, ArithmeticError, KeyError, TypeError, RecursionError) as error:
        spoiled = path.with_suffix(path.suffix + ".spoiled")
        try:
            path.replace(spoiled)
        except OSError:
            return (), f"{path} could not be read ({error})"
        return (), f"{path} could not be read ({error}); it is saved as {spoiled}"
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
    write_file(path, json.dumps(document).encode(), is_lasting=True)

"""Philly's job log as it was published (JSON) [Jeon2019], as rows of jobs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

Row = dict[str, Any]


def is_philly(document: Any) -> bool:
    """Whether this is a list of jobs with attempts, as that cluster logged them."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, Mapping) and {"attempts", "submitted_time", "vc"} <= first.keys()


def philly_rows(document: list[Row]) -> list[Row]:
    """A row for each job: all its attempts' time, on the GPUs of the widest of them."""
    return [
        {
            "job_id": job.get("jobid"),
            "submit": job["submitted_time"],
            "duration": sum(map(_length_s, job["attempts"])),
            "gpus": max(map(_n_gpus, job["attempts"]), default=0),
            "team": job["vc"],
            "state": job.get("status"),
        }
        for job in document
    ]


def _length_s(attempt: Row) -> float:
    """Seconds of an attempt that began and ended; none where the log lacks either."""
    start, end = (str(attempt.get(f"{name}_time")) for name in ("start", "end"))
    if "None" in (start, end):
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _n_gpus(attempt: Row) -> int:
    return sum(len(place["gpus"]) for place in attempt["detail"])

"""What Slurm's tools print for people: seff, sdiag, scontrol, sshare, sacct without heading."""

import re
from collections.abc import Sequence

from gpuplan.domain.telemetry.observation import Allocation, Subject
from gpuplan.observe.clock import seconds
from gpuplan.observe.collect import Collector
from gpuplan.observe.names import PERCENT, Word
from gpuplan.observe.schedulers import n_gpus

_JOB = re.compile(r"^\d+(?:_\d+)?(?:\.\w+)?$")
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
_STATES = {
    "COMPLETED",
    "RUNNING",
    "PENDING",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
}
_BYTES = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
_SDIAG_TIME = re.compile(r"\((\d{9,})\)")
_SDIAG = {
    "jobs pending": Word("jobs_pending_count"),
    "jobs running": Word("jobs_running_count"),
}
_SDIAG_RATES = {
    "jobs submitted": Word("jobs_submitted_per_s"),
    "jobs failed": Word("jobs_failed_per_s"),
}


def is_bare_sacct(line: str) -> bool:
    """Whether a line is a job of `sacct --noheader`: an id, its resources, a state."""
    cells = line.strip().split("|")
    return (
        bool(_JOB.match(cells[0]))
        and any(cell.startswith(("cpu=", "billing=")) for cell in cells)
        and any(cell.split(" ")[0] in _STATES for cell in cells)
    )


def take_bare_sacct(collector: Collector, lines: Sequence[str]) -> None:
    """Jobs by what their cells look like; steps are part of their job."""
    collector.quirk("a list without its heading", "", "columns recognized by their content")
    for number, line in enumerate(lines, start=1):
        cells = line.strip().split("|")
        if not is_bare_sacct(line):
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        if "." in cells[0]:
            collector.quirk("steps of a job", cells[0], "part of their job")
            continue
        times = [place for place, cell in enumerate(cells) if _TIME.match(cell)]
        begin, end = (times[0], times[-1]) if times else (None, None)
        after = cells[end + 1 : end + 2] if end is not None else []
        state = next(cell for cell in cells if cell.split(" ")[0] in _STATES)
        tres = next(cell for cell in cells if cell.startswith(("cpu=", "billing=")))
        collector.allocation(
            Allocation(
                job=cells[0],
                team=cells[3] if len(cells) > 3 else "",
                n_accelerators=n_gpus(tres),
                state=state.split(" ")[0].lower(),
                begin_s=None if begin is None else seconds(cells[begin], collector),
                end_s=None if end is None else seconds(cells[end], collector),
                nodes=tuple(cell for cell in after if cell),
            )
        )


def is_seff(line: str) -> bool:
    """Whether this begins a report of `seff`."""
    return line.startswith("Job ID:")


def take_seff(collector: Collector, lines: Sequence[str]) -> None:
    """How well one job used its cores and memory."""
    remarks = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    job, user = remarks["Job ID"], remarks.get("User/Group", "").split("/")[0]
    collector.sampling = "mean"
    subject = collector.subject(Subject(job=job, team=user))
    if (share := _percent(remarks.get("CPU Efficiency", ""))) is not None:
        collector.sample(subject, Word("cpu_util_frac", PERCENT), 0.0, share)
    if (share := _percent(remarks.get("Memory Efficiency", ""))) is not None:
        collector.sample(subject, Word("host_memory_util_frac", PERCENT), 0.0, share)
    if (used := _bytes(remarks.get("Memory Utilized", ""))) is not None:
        collector.sample(subject, Word("host_memory_used_bytes"), 0.0, used)
    state = remarks.get("State", "unknown").split(" ")[0].lower()
    collector.allocation(Allocation(job=job, team=user, n_accelerators=0.0, state=state))
    collector.quirk("accelerators are not reported", f"job {job}", "counted as none")


def is_sdiag(text: str) -> bool:
    """Whether the scheduler tells about itself here."""
    return "sdiag output at" in text[:400]


def take_sdiag(collector: Collector, text: str) -> None:
    """Jobs that wait and run now, and the rate of new and failed ones since its counters began."""
    lines = text.splitlines()
    times = [float(found[1]) for line in lines[:4] if (found := _SDIAG_TIME.search(line))]
    at_s = times[0] if times else 0.0
    span_s = at_s - times[1] if len(times) > 1 else 0.0
    subject = collector.subject(Subject(service="slurm"))
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(":"))
        name = key.lower()
        if name in _SDIAG and value.isdigit():
            collector.sample(subject, _SDIAG[name], at_s, float(value))
        elif name in _SDIAG_RATES and value.isdigit() and span_s > 0:
            collector.sample(subject, _SDIAG_RATES[name], at_s, float(value) / span_s)


def is_processes(line: str) -> bool:
    """Whether this heads `scontrol listpids`."""
    return line.split()[:3] == ["PID", "JOBID", "STEPID"]


def take_processes(collector: Collector, lines: Sequence[str]) -> None:
    """Jobs with processes on this node: they run; what they hold is not told."""
    jobs = dict.fromkeys(cells[1] for line in lines[1:] if len(cells := line.split()) >= 3)
    for job in jobs:
        collector.allocation(Allocation(job=job, team="", n_accelerators=0.0, state="running"))
    collector.quirk("accelerators are not reported", "", "counted as none", n_cases=len(jobs))


def is_shares(line: str) -> bool:
    """Whether a line is of `sshare --parsable`: an account, shares, and minutes by resource."""
    cells = line.strip().split("|")
    return len(cells) >= 8 and cells[-1].startswith("cpu=") and cells[2].isdigit()


def take_shares(collector: Collector, lines: Sequence[str]) -> None:
    """How much of its fair share each account used."""
    for number, line in enumerate(lines, start=1):
        cells = line.strip().split("|")
        if not is_shares(line):
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        about = Subject(team=cells[0].strip(), job=cells[1].strip())
        value = cells[6] if _number(cells[6]) is not None else "nan"
        collector.sample(collector.subject(about), Word("share_used_ratio"), 0.0, float(value))


def _percent(text: str) -> float | None:
    return _number(text.partition("%")[0]) if "%" in text else None


def _bytes(text: str) -> float | None:
    amount, _, rest = text.partition(" ")
    value, unit = _number(amount), rest.split(" ")[0]
    return None if value is None or unit not in _BYTES else value * _BYTES[unit]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

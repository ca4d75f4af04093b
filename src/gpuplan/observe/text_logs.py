"""Logs meant for people: an engine's own lines, the kernel's, captures of tools."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.observation import Subject
from gpuplan.observe.collect import Collector
from gpuplan.observe.names import PERCENT, Word

_VLLM = re.compile(
    r"(?P<at>\d\d-\d\d \d\d:\d\d:\d\d).*?(?:Engine (?P<engine>\d+): )?"
    r"Avg prompt throughput: (?P<input>[\d.]+) tokens/s, "
    r"Avg generation throughput: (?P<output>[\d.]+) tokens/s, "
    r"Running: (?P<running>\d+) reqs?, .*?(?:Waiting|Pending): (?P<waiting>\d+) reqs?, "
    r"GPU KV cache usage: (?P<cache>[\d.]+)%(?:, Prefix cache hit rate: (?P<hit>[\d.]+)%)?"
)
_VLLM_WORDS = {
    "input": Word("input_tokens_per_s"),
    "output": Word("output_tokens_per_s"),
    "running": Word("requests_running_count"),
    "waiting": Word("requests_waiting_count"),
    "cache": Word("kv_cache_frac", PERCENT),
    "hit": Word("prefix_hit_frac", PERCENT),
}
_XID = re.compile(
    r"^(?:<\d+>)?\s*\[(?P<at>[^\]]+)\].*?NVRM: Xid \((?:PCI:)?(?P<bus>[^)]+)\): (?P<code>\d+)"
)
_KERNEL = re.compile(r"^(?:<\d>)?\[\s*[\d.]+\]\s")
_FABRIC = re.compile(r"^\[\w{3} \d\d \d{4} [\d:]{8}\] \[\w+\] \[tid \d+\]", re.MULTILINE)
_FABRIC_FAULT = re.compile(
    r"^\[(?P<at>\w{3} \d\d \d{4} [\d:]{8})\] \[ERROR\] .*?error (?P<code>\d+) "
    r".*?pci bus id (?P<bus>\S+)",
    re.MULTILINE,
)
_ANSI = re.compile(r"\x1b?\[[0-9;]*m")
NO_YEAR = Assumption(
    what="year of the log",
    value="1970",
    why="the log's lines name day and hour but no year",
    change="only differences between its times are used",
)


def has_engine_lines(text: str) -> bool:
    """Whether an engine's statistics stand in this log."""
    return "Avg prompt throughput" in text


def take_engine_log(collector: Collector, text: str) -> None:
    """Statistics that vLLM prints while it runs."""
    collector.assume(NO_YEAR)
    collector.sampling = "mean"
    for line in text.splitlines():
        match = _VLLM.search(_ANSI.sub("", line))
        if match is None:
            continue
        moment = datetime.strptime(f"1970-{match['at']}", "%Y-%m-%d %H:%M:%S")
        at_s = moment.replace(tzinfo=UTC).timestamp()
        subject = collector.subject(Subject(service=f"engine {match['engine'] or 0}"))
        for part, word in _VLLM_WORDS.items():
            if match[part] is not None:
                collector.sample(subject, word, at_s, float(match[part]))


def has_fabric_lines(text: str) -> bool:
    """Whether the manager of the scale-up fabric speaks here."""
    return bool(_FABRIC.search(text[:65536]))


def take_fabric_log(collector: Collector, text: str) -> None:
    """Faults of switches and their ports."""
    collector.quirk(
        "lines of the fabric manager",
        "",
        "only errors are read",
        n_cases=len(_FABRIC.findall(text)),
    )
    for match in _FABRIC_FAULT.finditer(text):
        at_s = datetime.strptime(match["at"], "%b %d %Y %H:%M:%S").replace(tzinfo=UTC).timestamp()
        subject = collector.subject(Subject(device=match["bus"]))
        collector.sample(subject, Word("switch_fault_code"), at_s, float(match["code"]))


def is_kernel_log(text: str) -> bool:
    """Whether these are messages of the kernel, with or without faults of accelerators."""
    lines = [line for line in text[:65536].splitlines() if line.strip()][:50]
    return len(lines) > 2 and sum(bool(_KERNEL.match(line)) for line in lines) > len(lines) // 2


def has_xid_lines(text: str) -> bool:
    """Whether the kernel reports faults of accelerators here."""
    return "NVRM: Xid" in text


def take_kernel_log(collector: Collector, text: str) -> None:
    """Faults that the driver reported to the kernel."""
    word = Word("xid_code")
    if not has_xid_lines(text):
        collector.quirk("messages of the kernel", "", "no fault of an accelerator among them")
    for number, line in enumerate(text.splitlines(), start=1):
        if "NVRM: Xid" not in line:
            continue
        match = _XID.search(line)
        at_s = None if match is None else _kernel_s(match["at"])
        if match is None or at_s is None:
            collector.quirk("a fault without a time", f"line {number}", "excluded")
            continue
        subject = collector.subject(Subject(device=match["bus"]))
        # Several faults within the clock's step are all kept, a millisecond apart.
        collector.sample(subject, word, at_s + number * 1e-3 % 1.0, float(match["code"]))


def _kernel_s(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def capture_tables(text: str) -> Iterator[list[str]]:
    """Lines of the comma-separated sections in a capture of several tools."""
    section: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("# $"):
            if section:
                yield section
            section = [] if "--query-gpu=" in line and "--format=csv" in line else None
        elif section is not None and line.strip() and not line.startswith("#"):
            section.append(line)
    if section:
        yield section

"""Text that a /metrics endpoint gives: samples out, one bad line never spoils the rest."""

import re
from collections.abc import Iterator

from gpuplan.observe.collect import Collector
from gpuplan.observe.samples import Sample

_LINE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)\s*"
    r'(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?'  # braces within quotes are text
    r"\s+(?P<value>\S+)(?:\s+(?P<at>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))?\s*(?:#.*)?$"
)
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def exposition_samples(text: str, collector: Collector) -> Iterator[Sample]:
    """Samples of a text; lines without a time get that of the scrape, 0 where none is known."""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        sample = _sample(stripped)
        if sample is None:
            collector.quirk("not a sample", f"line {number}: {stripped[:40]}", "left out")
            continue
        yield sample


def looks_like_exposition(head: str) -> bool:
    """Whether most lines of a file's beginning are comments or samples."""
    lines = [line.strip() for line in head.splitlines()[:40] if line.strip()]
    good = sum(
        line.startswith(("# HELP", "# TYPE", "# EOF")) or _sample(line) is not None
        for line in lines
    )
    return bool(lines) and good * 2 > len(lines)


def _sample(line: str) -> Sample | None:
    match = _LINE.match(line)
    if match is None:
        return None
    labels = _labels(match["labels"] or "")
    if labels is None:
        return None
    try:
        value = float(match["value"])
    except ValueError:
        return None
    at = match["at"]
    # The text format counts milliseconds, OpenMetrics seconds; only milliseconds reach 1e11.
    at_s = 0.0 if at is None else float(at) / (1e3 if abs(float(at)) > 1e11 else 1.0)
    return Sample(match["name"], labels, value, at_s)


def _labels(text: str) -> dict[str, str] | None:
    labels, end = {}, 0
    for match in _LABEL.finditer(text):
        if match.start() != end:
            return None
        labels[match[1]] = re.sub(r'\\[\\"n]', lambda m: _ESCAPES[m[0]], match[2])
        end = match.end()
    return labels if not text[end:].strip() else None

"""Text that a /metrics endpoint gives: samples out, one bad line never spoils the rest.

Answers of the Prometheus HTTP API, saved or live: vectors, matrices, remote read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.errors import InputError, one
from gpuplan.observe.collect import Collector
from gpuplan.observe.guard import clean, mapping, number, sequence
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
    for place, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        sample = _sample(stripped)
        if sample is None:
            collector.quirk("not a sample", f"line {place}: {stripped[:40]}", "excluded")
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


def is_prometheus_json(document: object) -> bool:
    """Whether this is an answer of a query, or a remote read written as JSON."""
    if not isinstance(document, Mapping):
        return False
    data = document.get("data", document)
    return (isinstance(data, Mapping) and ("resultType" in data or "timeseries" in data)) or (
        "results" in document
    )


def json_samples(document: Mapping[str, Any], collector: Collector) -> Iterator[Sample]:
    """Samples of an answer; warnings of the server become quirks, an error ends it."""
    if document.get("status") == "error":
        what = clean(document.get("error", "no reason given"))
        raise one(InputError, "prometheus", "query", what, "fix the query or retry later")
    for warning in sequence(document.get("warnings")):
        collector.quirk("the server warns", str(warning)[:120], "its data is used")
    data = mapping(document.get("data", document))
    if "resultType" in data:
        yield from _result(data, collector)
    for part in sequence(document.get("results", [document])):
        for series in sequence(mapping(part).get("timeseries")):
            yield from _remote(mapping(series))


def _result(data: Mapping[str, Any], collector: Collector) -> Iterator[Sample]:
    for series in sequence(data.get("result")):
        if not isinstance(series, Mapping):
            collector.quirk("a scalar answer", str(series)[:60], "excluded: it names no series")
            continue
        labels = {str(key): clean(value) for key, value in mapping(series.get("metric")).items()}
        name = labels.pop("__name__", "")
        points = series.get("values", [series["value"]] if "value" in series else [])
        yield from _points(name, labels, sequence(points), collector)


def _points(
    name: str, labels: Mapping[str, str], points: list[Any], collector: Collector
) -> Iterator[Sample]:
    for point in points:
        if not isinstance(point, list) or len(point) != 2:
            collector.quirk("not a point", f"{name}: {clean(point)[:60]}", "excluded")
            continue
        at_s, value = point
        yield Sample(name, labels, number(value), number(at_s))


def _remote(series: Mapping[str, Any]) -> Iterator[Sample]:
    pairs = [mapping(pair) for pair in sequence(series.get("labels"))]
    labels = {str(pair.get("name")): clean(pair.get("value")) for pair in pairs}
    name = labels.pop("__name__", "")
    for point in map(mapping, sequence(series.get("samples"))):
        yield Sample(name, labels, number(point.get("value")), number(point.get("timestamp")) / 1e3)

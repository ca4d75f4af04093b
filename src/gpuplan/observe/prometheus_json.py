"""Answers of the Prometheus HTTP API, saved or live: vectors, matrices, remote read."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.errors import InputError, one
from gpuplan.observe.collect import Collector
from gpuplan.observe.guard import clean, mapping, number, sequence
from gpuplan.observe.samples import Sample


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
        raise one(InputError, "prometheus", "query", what, "mend the query or ask later")
    for warning in sequence(document.get("warnings")):
        collector.quirk("the server warns", str(warning)[:120], "kept what it sent")
    data = mapping(document.get("data", document))
    if "resultType" in data:
        yield from _result(data, collector)
    for part in sequence(document.get("results", [document])):
        for series in sequence(mapping(part).get("timeseries")):
            yield from _remote(mapping(series))


def _result(data: Mapping[str, Any], collector: Collector) -> Iterator[Sample]:
    for series in sequence(data.get("result")):
        if not isinstance(series, Mapping):
            collector.quirk("a scalar answer", str(series)[:60], "left out: it names no series")
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
            collector.quirk("not a point", f"{name}: {clean(point)[:60]}", "left out")
            continue
        at_s, value = point
        yield Sample(name, labels, number(value), number(at_s))


def _remote(series: Mapping[str, Any]) -> Iterator[Sample]:
    pairs = [mapping(pair) for pair in sequence(series.get("labels"))]
    labels = {str(pair.get("name")): clean(pair.get("value")) for pair in pairs}
    name = labels.pop("__name__", "")
    for point in map(mapping, sequence(series.get("samples"))):
        yield Sample(name, labels, number(point.get("value")), number(point.get("timestamp")) / 1e3)

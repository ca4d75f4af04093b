"""Answers of the Prometheus HTTP API, saved or live: vectors, matrices, remote read."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.errors import InputError, one
from gpuplan.observe.collect import Collector
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
        what = str(document.get("error", "no reason given"))
        raise one(InputError, "prometheus", "query", what, "mend the query or ask later")
    for warning in document.get("warnings", ()):
        collector.quirk("the server warns", str(warning)[:120], "kept what it sent")
    data = document.get("data", document)
    if "resultType" in data:
        yield from _result(data, collector)
    for part in document.get("results", (document,)):
        for series in part.get("timeseries", ()):
            yield from _remote(series)


def _result(data: Mapping[str, Any], collector: Collector) -> Iterator[Sample]:
    for series in data.get("result", ()):
        if not isinstance(series, Mapping):
            collector.quirk("a scalar answer", str(series)[:60], "left out: it names no series")
            continue
        labels = dict(series.get("metric", {}))
        name = labels.pop("__name__", "")
        points = series.get("values", [series["value"]] if "value" in series else [])
        for at_s, value in points:
            yield Sample(name, labels, float(value), float(at_s))


def _remote(series: Mapping[str, Any]) -> Iterator[Sample]:
    labels = {str(pair["name"]): str(pair["value"]) for pair in series.get("labels", ())}
    name = labels.pop("__name__", "")
    for point in series.get("samples", ()):
        yield Sample(name, labels, float(point["value"]), float(point["timestamp"]) / 1e3)

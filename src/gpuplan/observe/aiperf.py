"""What AIPerf exports after a load test: its own figures, and what it scraped from the server.

Exports are summaries: one mean for each metric, and whole histograms where the server kept them.
"""

import csv
import json
import re
from collections.abc import Mapping
from typing import Any

from gpuplan.domain.telemetry.observation import Subject
from gpuplan.observe.collect import Collector
from gpuplan.observe.names import HISTOGRAMS, MILLI, PERCENT, PROMETHEUS, Word

_NANO = 1e-9
# AIPerf's names in plain words, and the unit that it states.
_METRICS = {
    "time_to_first_token": Word("ttft_mean_s", MILLI),
    "inter_token_latency": Word("tpot_mean_s", MILLI),
    "request_latency": Word("e2e_mean_s", MILLI),
    "request_throughput": Word("requests_per_s"),
    "output_token_throughput": Word("output_tokens_per_s"),
    "input_token_throughput": Word("input_tokens_per_s"),
    "theoretical_prefix_cache_hit": Word("prefix_hit_frac", PERCENT),
}
_SUMMARY = {
    "ttft": "ttft_mean_s",
    "e2el": "e2e_mean_s",
    "tpot": "tpot_mean_s",
}
_PLAIN = re.compile(r"\s*\([^)]*\)\s*$")


def is_export(text: str) -> bool:
    """Whether this is a comma-separated export of a load test, or of what it scraped."""
    head = text[:400]
    return head.startswith(("# AIPerf", "Metric,avg,min,max"))


def take_export(collector: Collector, text: str) -> None:
    """Sections of rows, each under its own heading."""
    collector.sampling = "mean"
    heading: list[str] = []
    for cells in csv.reader(text.splitlines()):
        if not cells or cells[0].startswith("#"):
            continue
        if cells[0] == "Endpoint" or cells[:2] in (["Metric", "avg"], ["Metric", "Value"]):
            heading = cells
            continue
        row = dict(zip(heading, cells, strict=False))
        if "Endpoint" in row:
            _take_scraped(collector, row)
        else:
            _take_figure(collector, row.get("Metric", ""), row.get("avg") or row.get("Value") or "")


def _take_scraped(collector: Collector, row: Mapping[str, str]) -> None:
    name = row.get("Metric", "")
    subject = collector.subject(Subject(node=row["Endpoint"], service=row.get("model_name") or ""))
    kind = row.get("Type", "")
    word = PROMETHEUS.get(name) or PROMETHEUS.get(f"{name}_total")
    if kind == "histogram" and name in HISTOGRAMS:
        _take_buckets(collector, subject, HISTOGRAMS[name], row)
    elif word is None or kind not in ("gauge", "counter"):
        collector.quirk("names outside the vocabulary", name or "a row", "excluded")
    else:
        cell = row.get("rate" if kind == "counter" else "avg") or "nan"
        collector.sample(subject, Word(word.metric, word.scale), 0.0, float(cell))


def _take_buckets(collector: Collector, subject: int, metric: str, row: Mapping[str, str]) -> None:
    """Cumulative counts `bound=count;…` of the whole test."""
    for pair in (row.get("buckets") or "").split(";"):
        bound, _, count = pair.partition("=")
        if count:
            upper = float(bound.replace("+Inf", "inf"))
            collector.bucket(subject, metric, 0.0, upper=upper, count=float(count))
    collector.bucket_sum(subject, metric, 0.0, float(row.get("sum") or "nan"))
    collector.bucket_number(subject, metric, 0.0, float(row.get("count") or "nan"))


def _take_figure(collector: Collector, name: str, cell: str) -> None:
    word = _METRICS.get(_PLAIN.sub("", name).strip().lower().replace(" ", "_"))
    value = cell.replace(",", "")
    if word is None:
        collector.quirk("names outside the vocabulary", name, "excluded")
        return
    collector.sample(collector.subject(Subject()), word, 0.0, float(value or "nan"))


def is_console(text: str) -> bool:
    """Whether this is what a load test printed."""
    return "NVIDIA AIPerf |" in text[:2000]


def take_console(collector: Collector, text: str) -> None:
    """Rows of the printed tables; the first number is the mean."""
    collector.sampling = "mean"
    name = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("│").split("│")]
        if not line.lstrip().startswith("│") or len(cells) < 2:
            name = ""
        elif cells[1]:
            name = cells[0]
            _take_figure(collector, name, cells[1] if cells[1] != "N/A" else "")


def is_figures(document: object) -> bool:
    """Whether this is the JSON of the same figures, or a summary made of it."""
    return isinstance(document, Mapping) and (
        "aiperf_version" in document or {"request_metrics", "num_requests_total"} <= set(document)
    )


def take_figures(collector: Collector, document: Mapping[str, Any]) -> None:
    """One mean for each metric."""
    collector.sampling = "mean"
    subject = collector.subject(Subject(service=str(document.get("model", ""))))
    for name, word in _METRICS.items():
        found = document.get(name)
        if isinstance(found, Mapping) and found.get("avg") is not None:
            collector.sample(subject, word, 0.0, float(found["avg"]))
    latency = (document.get("request_metrics") or {}).get("latency") or {}
    for name, metric in _SUMMARY.items():
        mean = (latency.get(name) or {}).get("mean")
        if mean is not None:
            collector.sample(subject, Word(metric), 0.0, float(mean))


def is_records(text: str) -> bool:
    """Whether each line is one request of a load test."""
    line = text[:65536].partition("\n")[0]
    return line.startswith('{"metadata"') and '"metrics"' in line


def take_records(collector: Collector, text: str) -> None:
    """Requests at the moment they were sent; those of the warm-up are left out."""
    words = {
        name: _METRICS[name]
        for name in ("time_to_first_token", "inter_token_latency", "request_latency")
    }
    subject = collector.subject(Subject())
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            about, metrics = record["metadata"], record["metrics"]
            at_s = float(about["request_start_ns"]) * _NANO
        except (ValueError, KeyError, TypeError):
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        if about.get("benchmark_phase") == "warmup":
            collector.quirk("requests of the warm-up", f"line {number}", "excluded")
            continue
        for name, word in words.items():
            if name in metrics:
                collector.sample(subject, word, at_s, float(metrics[name]["value"]))

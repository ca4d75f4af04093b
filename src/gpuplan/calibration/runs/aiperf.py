"""AIPerf and GenAI-Perf exports (JSON and CSV) -> one row per file.

Both divide each request's time after its first token by its tokens less one, and take the mean
over requests. Units stand in the files and are read from there.
"""

import re
from collections.abc import Mapping

from gpuplan.calibration.runs.fields import (
    OUR_TPOT,
    Reading,
    check_tpot,
    is_failure,
    mapping,
    number,
    offered,
    words,
)
from gpuplan.csv_rows import csv_cells
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.units import MS

TOOL = "aiperf"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": MS, "s": 1.0, "sec": 1.0, "seconds": 1.0}
METRICS = (
    "time_to_first_token",
    "inter_token_latency",
    "request_latency",
    "request_throughput",
    "output_token_throughput",
)
# GenAI-Perf and AIPerf write some names otherwise in their tables.
CSV_NAMES = {"request_count_count": "request_count"}
CSV_MOST_ROWS = 5000
MOST_CACHED_PCT = 5.0  # above, prefix-cache hits make prompts cheaper than their tokens
HEADING = re.compile(r"^(?P<name>[^()]+?)\s*(?:\((?P<unit>[^()]*)\))?$")

Stats = Mapping[str, Mapping[str, object]]


def is_export(document: object) -> bool:
    """Whether this is a JSON export of either tool."""
    found = mapping(document)
    return any("avg" in mapping(found.get(name)) for name in METRICS)


def is_csv_export(first_line: str) -> bool:
    """Whether this is the heading of a CSV export of either tool."""
    return first_line.strip().lower().startswith("metric,avg,")


def read_export(document: object, where: str) -> RunsRead:
    """The row of a JSON export."""
    reading = Reading(where, TOOL)
    found = mapping(document)
    stats = {name: mapping(value) for name, value in found.items()}
    config = mapping(found.get("input_config"))
    _remark_state(reading, found)
    _read(reading, stats, config)
    return reading.result()


def read_csv_export(text: str, where: str) -> RunsRead:
    """The row of a CSV export, which does not hold the model or the load."""
    reading = Reading(where, TOOL)
    stats: dict[str, dict[str, object]] = {}
    heads = ["metric", "avg"]
    for _, cells in csv_cells(text, source=where)[:CSV_MOST_ROWS]:
        if cells[0].strip().lower() == "metric":
            heads = [head.strip().lower() for head in cells]
            heads = ["avg" if head == "value" else head for head in heads]
        elif len(cells) > 1:
            name, unit = _csv_name(cells[0])
            stats[name] = {"unit": unit, **dict(zip(heads[1:], cells[1:], strict=False))}
    reading.remark("a CSV export does not state the model or the load; the JSON export does")
    _read(reading, stats, {})
    return reading.result()


def _csv_name(text: str) -> tuple[str, str]:
    found = HEADING.match(text.strip()[:120])
    if found is None:
        return "", ""
    name = re.sub(r"[^a-z0-9]+", "_", found["name"].strip().lower()).strip("_")
    return CSV_NAMES.get(name, name), (found["unit"] or "").strip()


def _read(reading: Reading, stats: Stats, config: Mapping[str, object]) -> None:
    n_done = _avg(stats, "request_count") or 0.0
    if is_failure(reading, _avg(stats, "error_request_count") or 0.0, n_done):
        return
    cells: dict[str, object] = {
        "model": _model(config),
        "input_tokens": _avg(stats, "input_sequence_length"),
        "output_tokens": _avg(stats, "output_sequence_length"),
        "measured_output_tokens_per_s": _avg(stats, "output_token_throughput"),
        "measured_ttft_mean_ms": _time(stats, "time_to_first_token", "avg", MS),
        "measured_ttft_p99_ms": _time(stats, "time_to_first_token", "p99", MS),
        "measured_tpot_mean_ms": _time(stats, "inter_token_latency", "avg", MS),
        "measured_tpot_p50_ms": _time(stats, "inter_token_latency", "p50", MS),
        "measured_tpot_p99_ms": _time(stats, "inter_token_latency", "p99", MS),
        "measured_e2e_s": _time(stats, "request_latency", "avg", 1.0),
    }
    check_tpot(reading, cells)
    cells = _uncached(reading, cells, stats)
    concurrency, rate = _stated(config, "concurrency"), _stated(config, "request_rate")
    if concurrency is None and rate is None:
        reading.remark("the load is not stated: give --concurrency or --rate")
        row = cells
    else:
        row = offered(
            reading,
            cells,
            concurrency=concurrency,
            rate_per_s=rate,
            n_requests=n_done or None,
            duration_s=_time(stats, "benchmark_duration", "avg", 1.0),
        )
    reading.add(row, flag=f"tpot: {OUR_TPOT}")


def _uncached(reading: Reading, cells: dict[str, object], stats: Stats) -> dict[str, object]:
    """Prefix hits spare prompt work that predictions would count: only decoding remains."""
    hits_pct = _avg(stats, "theoretical_prefix_cache_hit") or 0.0
    if hits_pct <= MOST_CACHED_PCT:
        return cells
    reading.remark(
        f"{hits_pct:.0f} % of the prompt tokens could come from a prefix cache: throughput, TTFT "
        "and end-to-end latency are not used, TPOT is"
    )
    conditions = ("model", "input_tokens", "output_tokens")
    return {k: v for k, v in cells.items() if k in conditions or k.startswith("measured_tpot")}


def _remark_state(reading: Reading, found: Mapping[str, object]) -> None:
    if found.get("was_cancelled") is True:
        reading.remark("the run was cancelled before its end")
    warm = _avg({"n": mapping(mapping(found.get("warmup_metrics")).get("request_count"))}, "n")
    if warm:
        reading.remark(f"{warm:.0f} warm-up requests are not counted")
    errors = found.get("error_summary")
    if isinstance(errors, list) and errors:
        n = sum(number(mapping(error).get("count")) or 0.0 for error in errors)
        reading.remark(f"errors of {len(errors)} kinds in {n:.0f} requests")


def _avg(stats: Stats, name: str) -> float | None:
    return number(mapping(stats.get(name)).get("avg"))


def _time(stats: Stats, name: str, part: str, unit_s: float) -> float | None:
    of = mapping(stats.get(name))
    value = number(of.get(part))
    scale = SECONDS.get(words(of.get("unit")).lower(), MS)
    return None if value is None else value * scale / unit_s


def _stated(config: Mapping[str, object], name: str) -> float | None:
    holders = (
        mapping(config.get("loadgen")),
        config,
        mapping(mapping(config.get("perf_analyzer")).get("stimulus")),
        mapping(config.get("stimulus")),
    )
    return next((n for holder in holders if (n := number(holder.get(name))) is not None), None)


def _model(config: Mapping[str, object]) -> str:
    for holder in (mapping(config.get("endpoint")), config):
        for key in ("model_names", "model", "model_name"):
            found = holder.get(key)
            first = found[0] if isinstance(found, list) and found else found
            if words(first):
                return words(first)
    return ""

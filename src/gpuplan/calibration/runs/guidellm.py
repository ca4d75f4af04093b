"""GuideLLM's benchmark report (JSON, report versions 1 and 2) -> rows.

Its inter-token latency leaves the first token out, as ours does, and weighs requests by their
tokens; its "time per output token" counts the first token and is turned into ours.
"""

from collections.abc import Mapping

from gpuplan.calibration.runs.fields import (
    Reading,
    check_tpot,
    is_failure,
    mapping,
    number,
    offered,
    words,
)
from gpuplan.domain.calibration.runs import RunsRead

TOOL = "guidellm"
FLAG = "tpot: (end to end - first token) / (tokens - 1), weighed by tokens"
FLAG_WITH_FIRST = "tpot: from a time per token that counts the first, which was taken out"
MOST_BENCHMARKS = 1000


def is_report(document: object) -> bool:
    """Whether this is a benchmark report of the tool."""
    benchmarks = mapping(document).get("benchmarks")
    return isinstance(benchmarks, list) and any("metrics" in mapping(b) for b in benchmarks)


def read_report(document: object, where: str) -> RunsRead:
    """One row per benchmark of the report."""
    reading = Reading(where, TOOL)
    report = mapping(document)
    benchmarks = report.get("benchmarks")
    for benchmark in (benchmarks if isinstance(benchmarks, list) else [])[:MOST_BENCHMARKS]:
        _read(reading, mapping(benchmark), _model(report, mapping(benchmark)))
    return reading.result()


def _read(reading: Reading, benchmark: Mapping[str, object], model: str) -> None:
    metrics = mapping(benchmark.get("metrics"))
    n_done, n_failed, n_cut = _counts(benchmark, metrics)
    if is_failure(reading, n_failed, n_done):
        return
    if n_cut:
        reading.remark(f"{n_cut:.0f} requests were still under way at the end and are not counted")
    _remark_phases(reading, benchmark)
    cells: dict[str, object] = {
        "model": model,
        "input_tokens": _stat(metrics, "prompt_token_count"),
        "output_tokens": _stat(metrics, "output_token_count"),
        "measured_output_tokens_per_s": _stat(metrics, "output_tokens_per_second"),
        "measured_ttft_mean_ms": _stat(metrics, "time_to_first_token_ms"),
        "measured_ttft_p99_ms": _stat(metrics, "time_to_first_token_ms", "p99"),
        "measured_tpot_mean_ms": _stat(metrics, "inter_token_latency_ms"),
        "measured_tpot_p50_ms": _stat(metrics, "inter_token_latency_ms", "p50"),
        "measured_tpot_p99_ms": _stat(metrics, "inter_token_latency_ms", "p99"),
        "measured_e2e_s": _stat(metrics, "request_latency"),
    }
    flag = FLAG
    if cells["measured_tpot_mean_ms"] is None:
        cells["measured_tpot_mean_ms"] = _without_first(metrics)
        flag = FLAG_WITH_FIRST
    check_tpot(reading, cells)
    row = _offered(reading, cells, _strategy(benchmark), metrics, n_done)
    reading.add(row, flag=flag)


def _offered(
    reading: Reading,
    cells: dict[str, object],
    strategy: Mapping[str, object],
    metrics: Mapping[str, object],
    n_done: float,
) -> dict[str, object]:
    kind = words(strategy.get("type_") or strategy.get("type")).lower()
    concurrency = number(strategy.get("streams"))
    rate = number(strategy.get("rate"))
    if kind == "synchronous":
        concurrency = 1.0
    elif kind == "throughput":
        concurrency = number(strategy.get("max_concurrency"))
    elif kind == "constant":
        reading.remark("arrivals at a constant pace; predictions take Poisson arrivals")
    elif kind == "trace":
        rate = _stat(metrics, "requests_per_second")
        reading.remark("arrivals from a trace; read as Poisson at their mean rate")
    elif kind not in ("concurrent", "poisson"):
        reading.remark(f"strategy {kind!r} is not known: the run is read as max_load")
    return offered(reading, cells, concurrency=concurrency, rate_per_s=rate, n_requests=n_done)


def _strategy(benchmark: Mapping[str, object]) -> dict[str, object]:
    for holder in ("config", "args", "scheduler", "benchmarker"):
        found = mapping(mapping(benchmark.get(holder)).get("strategy"))
        if found:
            return found
    return {}


def _counts(
    benchmark: Mapping[str, object], metrics: Mapping[str, object]
) -> tuple[float, float, float]:
    for holder in (metrics, benchmark, mapping(benchmark.get("run_stats"))):
        totals = mapping(holder.get("request_totals") or holder.get("requests_made"))
        if totals:
            done, errored, cut = (
                number(totals.get(key)) or 0.0 for key in ("successful", "errored", "incomplete")
            )
            return done, errored, cut
    return 0.0, 0.0, 0.0


def _stat(metrics: Mapping[str, object], name: str, part: str = "mean") -> float | None:
    """A statistic of the requests that succeeded."""
    of = mapping(mapping(metrics.get(name)).get("successful"))
    if part == "mean":
        return number(of.get("mean"))
    found = number(mapping(of.get("percentiles")).get(part))
    return number(of.get("median")) if found is None and part == "p50" else found


def _without_first(metrics: Mapping[str, object]) -> float | None:
    tpot, ttft = (
        _stat(metrics, "time_per_output_token_ms"),
        _stat(metrics, "time_to_first_token_ms"),
    )
    n = _stat(metrics, "output_token_count")
    if tpot is None or ttft is None or n is None or n <= 1:
        return None
    return number((tpot * n - ttft) / (n - 1))


def _remark_phases(reading: Reading, benchmark: Mapping[str, object]) -> None:
    for key in ("warmup_duration", "cooldown_duration"):
        found = number(benchmark.get(key))
        if found is not None and found > 0.05:
            reading.remark(f"{found:.3g} s of {key.split('_')[0]} are not counted")


def _model(report: Mapping[str, object], benchmark: Mapping[str, object]) -> str:
    holders = (
        mapping(mapping(benchmark.get("config")).get("backend")),
        mapping(mapping(mapping(report.get("config")).get("spec")).get("backend")),
        mapping(mapping(report.get("args")).get("backend_kwargs")),
        mapping(report.get("args")),
        mapping(benchmark.get("worker")),
        mapping(benchmark.get("backend")),
    )
    for holder in holders:
        for key in ("model", "backend_model", "model_name"):
            if words(holder.get(key)):
                return words(holder.get(key))
    return ""

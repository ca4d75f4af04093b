"""MLPerf LoadGen's `mlperf_log_summary.txt` -> a row per summary. Times are in nanoseconds."""

import re
from collections.abc import Mapping

from gpuplan.calibration.runs.fields import OUR_TPOT, Reading, number, per, scaled, words
from gpuplan.csv_rows import meanings
from gpuplan.domain.calibration.runs import RunsRead

TOOL = "mlperf loadgen"
TITLE = "MLPerf Results Summary"
LINE = re.compile(r"^\s*([A-Za-z0-9][^:]{2,70}?)\s*:\s*(\S.*?)\s*$")
NS_PER_MS, NS_PER_S = 1e-6, 1e-9
REGIMES = meanings("calibration", "mlperf_scenario")


def read_summary(text: str, where: str) -> RunsRead:
    """One row per summary in the text."""
    reading = Reading(where, TOOL)
    for part in text.split(TITLE)[1:]:
        _read(reading, _lines(part))
    return reading.result()


def _lines(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = LINE.match(line[:300])
        if match:
            found.setdefault(match[1].strip().lower(), match[2])
    return found


def _read(reading: Reading, found: Mapping[str, str]) -> None:
    scenario = found.get("scenario", "").replace(" ", "").lower()
    if found.get("mode", "PerformanceOnly") not in ("PerformanceOnly", "FindPeakPerformance"):
        reading.remark(f"mode {words(found.get('mode'))} measures no speed; not used")
        return
    if scenario not in REGIMES:
        reading.remark(f"scenario {words(scenario)!r} has no prediction; not used")
        return
    if found.get("result is", "VALID") != "VALID":
        reading.remark("the run is INVALID by the rules of the benchmark; its figures are used")
    tokens_per_s, note = _tokens_per_s(found)
    if note:
        reading.remark(note)
    mean_s = scaled(found.get("mean latency (ns)"), NS_PER_S)
    cells: dict[str, object] = {
        "regime": REGIMES[scenario],
        "layout_note": words(found.get("sut name")),
        "source": "user: mlperf loadgen",
        "request_rate_per_s": found.get("scheduled samples per second", ""),
        "batch": 1.0 if scenario == "singlestream" else None,
        "output_tokens": per(tokens_per_s, _samples_per_s(found)),
        "measured_output_tokens_per_s": tokens_per_s,
        "measured_ttft_mean_ms": scaled(found.get("mean first token latency (ns)"), NS_PER_MS),
        "measured_ttft_p99_ms": _percentile(found, "99.00", "first token latency (ns)"),
        "measured_tpot_mean_ms": scaled(found.get("mean time to output token (ns)"), NS_PER_MS),
        "measured_tpot_p50_ms": _percentile(found, "50.00", "time to output token (ns)"),
        "measured_tpot_p99_ms": _percentile(found, "99.00", "time to output token (ns)"),
        # The latencies of an offline run are waits in one queue that all samples join at once.
        "measured_e2e_s": None if scenario == "offline" else mean_s,
    }
    reading.add(cells, flag=f"tpot: {OUR_TPOT}")


def _samples_per_s(found: Mapping[str, str]) -> float | None:
    keys = ("samples per second", "completed samples per second", "qps w/o loadgen overhead")
    return next((n for key in keys if (n := number(found.get(key))) is not None), None)


def _tokens_per_s(found: Mapping[str, str]) -> tuple[float | None, str]:
    for key in ("tokens per second", "completed tokens per second", "tps w/o loadgen overhead"):
        value = number(found.get(key))
        if value is not None:
            return value, ""
    inferred = number(found.get("tokens per second (inferred)"))
    if inferred is not None:
        return inferred, "tokens per second were inferred from a fixed length, not counted"
    return None, "no tokens per second in the summary: it was run without token latencies"


def _percentile(found: Mapping[str, str], rank: str, what: str) -> float | None:
    return scaled(found.get(f"{rank} percentile {what}"), NS_PER_MS)

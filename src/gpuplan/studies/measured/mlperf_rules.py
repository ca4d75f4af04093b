"""Rules of MLPerf Inference that its result tables leave out: lengths, and limits on latency."""

from collections.abc import Mapping
from typing import NamedTuple

from gpuplan.domain.inference.performance import LatencyLimits
from gpuplan.units import MS


class Rules(NamedTuple):
    """Mean prompt and output, and limits on p99 TTFT and TPOT in ms, of one benchmark."""

    tokens: tuple[int, int]
    server_ms: tuple[float, float] | None = None
    interactive_ms: tuple[float, float] | None = None


# Limits as of [MLPerf-inference-rules], commit ac93e89c. Lengths are assumptions where none is
# stated.
RULES = {
    "gpt-j-6b": Rules((870, 69)),
    "llama-2-70b": Rules((294, 294), (2000, 200), (450, 40)),
    "mixtral-8x7b": Rules((480, 146), (2000, 200)),
    "llama-3.1-405b": Rules((9400, 685), (6000, 175), (4500, 80)),
    "llama-3.1-8b": Rules((870, 128), (2000, 100), (500, 30)),
    "deepseek-r1": Rules((800, 3880), (2000, 80), (1500, 15)),
    "gpt-oss-120b": Rules((1100, 1300), (3000, 80), (2000, 20)),
}
MLPERF_TOKENS = {name: rules.tokens for name, rules in RULES.items()}


def is_submission(row: Mapping[str, str]) -> bool:
    """The row was run by the rules of MLPerf."""
    return "mlperf" in row.get("source", "") or row["regime"].startswith("MLPerf")


def limits_of(row: Mapping[str, str]) -> LatencyLimits | None:
    """The limits of the row's benchmark and scenario; None where it is no submission."""
    rules = RULES.get(row["model"].lower())
    if rules is None or not is_submission(row):
        return None
    is_interactive = "interactive" in row["regime"].lower()
    found = rules.interactive_ms if is_interactive else rules.server_ms
    return None if found is None else LatencyLimits(found[0] * MS, found[1] * MS)

"""Validation of MLPerf Inference: a submission to the rate of its pipeline on its boards."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from gpuplan.calibration.networks.stored import benchmark_rate, benchmarks
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, one
from gpuplan.performance.other_networks import speed_ratio
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.measured.mlperf_rules import MLPERF_TOKENS
from gpuplan.studies.networks.speech import board_figures

Row = dict[str, str]

MLPERF_COLUMNS = frozenset({"model_benchmark", "scenario", "result", "accelerators_total"})
# Rate under a latency SLO over the rate without: medians of 259 pairs of submissions, with what
# four of five lie in [MLPerf]. Responses of BERT are short and the SLO is strict.
SERVER_SHARES: Mapping[str, tuple[float, float, float]] = {
    "bert-99": (0.80, 0.77, 0.99),
    "bert-99.9": (0.81, 0.78, 0.83),
    "resnet": (0.90, 0.82, 1.0),
}
SERVER_SHARE = (0.93, 0.80, 0.98)
BEAM_SEARCH = "gptj"  # by the rules [MLPerf-inference-rules]


def predicted_submission(row: Row) -> PredictedRow:
    """The rate of a submission whose benchmark and board are known, beside its result."""
    name, board = row["model_benchmark"], row["accelerator"]
    model = language_model(name)
    if name.startswith(BEAM_SEARCH):
        fix = "leave it: beams share prompts and reorder caches, which is not modelled"
        raise one(InputError, "benchmark", name, "answers by a search over four beams", fix)
    if model is None and name not in benchmarks():
        fix = f"judged are {', '.join((*MLPERF_TOKENS, *benchmarks()[:10]))} …"
        raise one(InputError, "benchmark", name, "is no pipeline with a known rate", fix)
    if row.get("power_result"):
        raise one(InputError, "power", name, "ran for the least power, not for speed", "leave it")
    total = float(row["accelerators_total"] or 0)
    if total < 1 or "MIG" in board:
        raise one(InputError, "accelerators", board, "is no whole board", "count whole boards")
    share = _share(row["scenario"], name)
    if model is not None:
        rate = _scaled(_offline_rate(row, model), share, 1.0)
    else:
        rate = _scaled(_board_rate(name, board), share, total)
    groups = {
        "regime": f"{name} {row['scenario']}",
        "accelerator": board,
        "model": name,
        "source": row.get("round", ""),
        "engine": row.get("software", ""),
    }
    return PredictedRow(
        id="", groups=groups, predicted={"result": rate}, measured={"result": float(row["result"])}
    )


def language_model(benchmark: str) -> str | None:
    """The language model that a benchmark runs, as the rules name it: llama2-70b-99.9."""
    short = re.sub(r"-(99(\.9)?|interactive)", "", benchmark.lower())
    return next((name for name in MLPERF_TOKENS if _plain(name) == _plain(short)), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)


def _offline_rate(row: Row, model: str) -> Estimate:
    """Of the whole system without limits on latency, in the unit of the result."""
    remarks = {
        "id": row.get("submission_id", ""),
        "source": "mlperf closed",
        "accelerator": row["accelerator"],
        "n_accelerators": row["accelerators_total"],
        "model": model,
        "engine": row.get("software", ""),
        "regime": "MLPerf offline",
    }
    setup = serving_setup(remarks)
    rate = predict_inference(setup, benchmark="mlperf").output_tokens_per_s
    is_counted = row.get("result_units", "").lower().startswith("tokens")
    return rate if is_counted else rate.scaled(1.0 / setup.load.output_tokens)


@lru_cache(maxsize=512)
def _board_rate(name: str, board: str) -> Estimate:
    card = find_accelerator(board, read_catalog()).accelerator
    figures = board_figures()
    if str(card.id) not in figures:
        raise one(InputError, "accelerator", board, "has no peak for networks", "give one")
    return benchmark_rate(name, figures[str(card.id)], known=figures, speed_ratio=speed_ratio)


def _share(scenario: str, name: str) -> tuple[float, float, float]:
    if scenario == "Offline":
        return 1.0, 1.0, 1.0
    if scenario == "Server":
        return SERVER_SHARES.get(name, SERVER_SHARE)
    fix = "judged are Offline and Server"
    raise one(InputError, "scenario", scenario, "has another measure than a rate", fix)


def _scaled(rate: Estimate, share: tuple[float, float, float], total: float) -> Estimate:
    """The share's own spread widens the range."""
    value, low, high = share
    return replace(
        rate,
        value=rate.value * value * total,
        low=rate.low * low * total,
        high=rate.high * high * total,
    )

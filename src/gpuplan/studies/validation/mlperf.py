"""Validate tables of MLPerf Inference: submissions -> rates of whole pipelines on their boards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from gpuplan.calibration.networks.stored import benchmark_rate, benchmarks
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.performance.other_networks import speed_ratio
from gpuplan.studies.networks.boards import board_figures

Row = dict[str, str]
Answer = tuple[list[PredictedRow], list[tuple[str, str]]]

MLPERF_COLUMNS = frozenset({"model_benchmark", "scenario", "result", "accelerators_total"})
# Rate with a promised latency over the rate without: medians of 259 pairs of submissions, with
# what four of five lie in [MLPerf]. Answers of BERT are short and the promise is strict.
SERVER_SHARES: Mapping[str, tuple[float, float, float]] = {
    "bert-99": (0.80, 0.77, 0.99), "bert-99.9": (0.81, 0.78, 0.83), "resnet": (0.90, 0.82, 1.0),
}  # fmt: skip
SERVER_SHARE = (0.93, 0.80, 0.98)


def mlperf_rows(rows: Sequence[Row]) -> Answer:
    """Rates of submissions whose benchmark and board are known; the others with the reason."""
    found, refused = [], []
    for at, row in enumerate(rows):
        id_ = row.get("submission_id") or str(at)
        try:
            found.append(_predicted(row, id_))
        except PlannerError as error:
            refused.append((id_, str(error)))
    return found, refused


def _predicted(row: Row, id_: str) -> PredictedRow:
    name, board = row["model_benchmark"], row["accelerator"]
    if name not in benchmarks():
        fix = f"judged are {', '.join(benchmarks()[:10])} …; language models have their own table"
        raise one(InputError, "benchmark", name, "is no pipeline with a known rate", fix)
    if row.get("power_result"):
        raise one(InputError, "power", id_, "ran for the least power, not for speed", "leave it")
    total = float(row["accelerators_total"] or 0)
    if total < 1 or "MIG" in board:
        raise one(InputError, "accelerators", board, "is no whole board", "count whole boards")
    rate = _scaled(_board_rate(name, board), _share(row["scenario"], name), total)
    groups = {"regime": f"{name} {row['scenario']}", "accelerator": board, "model": name,
              "source": row.get("round", ""), "engine": row.get("software", "")}  # fmt: skip
    return PredictedRow(
        id=id_, groups=groups, predicted={"result": rate}, measured={"result": float(row["result"])}
    )


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

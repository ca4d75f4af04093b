"""Forecasts of recorded demand, a day ahead, beside last value and "as a day ago".

    python benchmarks/bench_forecast.py TRACES

TRACES is the folder of recorded traces. Prints one line a series, and how many are won.
"""

import csv
import gzip
import json
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl

from gpuplan.forecast.predict import backtest, season_of

HOUR_S = 3600.0


def hourly(at_s: list[float], value: list[float], *, is_sum: bool) -> np.ndarray:
    """Means or sums by the hour; hours without samples are drawn through."""
    place = ((np.array(at_s) - min(at_s)) // HOUR_S).astype(int)
    count = np.bincount(place)
    total = np.bincount(place, weights=np.array(value, float))
    if is_sum:
        return total[:-1]
    known = np.flatnonzero(count)
    return np.interp(np.arange(len(count)), known, total[known] / count[known])[:-1]


def table(path: Path, time: str, value: str, *, is_sum: bool = False) -> np.ndarray:
    """One column of a CSV file over its times."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        rows = [(row[time], row[value]) for row in csv.DictReader(lines) if row[time]]
    at_s = [datetime.fromisoformat(at.replace("Z", "")).timestamp() for at, _ in rows]
    return hourly(at_s, [float(v or 0) for _, v in rows], is_sum=is_sum)


def recorded(folder: Path) -> dict[str, np.ndarray]:
    """Every series of demand in the folder."""
    found = {
        f"helios {path.name.split('.')[0][6:]}": table(path, "time", "running_gpu_num")
        for path in sorted((folder / "helios").glob("Earth_vc*.gz"))
    }
    found["venus submissions"] = table(
        folder / "helios/Venus_cluster_throughput.csv", "time", "submit_gpu_num", is_sum=True
    )
    found["philly nodes"] = table(folder / "philly/philly_node_sequence.csv", "time", "active")
    jobs = table(folder / "philly/philly.csv", "timestamp", "num_gpus", is_sum=True)
    found["philly jobs"] = jobs[-24 * 60 :]
    azure = next((folder / "azure_llm_2024_2025_meta").glob("*requests*"))
    found["azure 2024"] = table(azure, "timestamp_utc", "rpm_mid_calibrated")
    burst = json.loads((folder / "burstgpt_aggregates/burstgpt_daily_first40.json").read_text())
    week = burst["week1_min"]
    found["burstgpt"] = hourly(
        [row["t"] * 60.0 for row in week], [row["tps"] for row in week], is_sum=True
    )
    return found | _servegen(folder) | _ragpulse(folder)


def _servegen(folder: Path) -> dict[str, np.ndarray]:
    rates = pl.read_parquet(folder / "servegen/servegen_client_rates.parquet")
    whole = rates.group_by("model", "t_s").agg(pl.col("rate_rps").sum()).sort("model", "t_s")
    found = {}
    for (model,), part in whole.group_by("model", maintain_order=True):
        values = hourly(part["t_s"].to_list(), part["rate_rps"].to_list(), is_sum=False)
        if len(values) >= 24 * 3:
            found[f"servegen {model}"] = values
    return found


def _ragpulse(folder: Path) -> dict[str, np.ndarray]:
    at_s = []
    for line in (folder / "ragpulse/0_trace.jsonl").read_text().splitlines():
        try:
            at_s.append(float(json.loads(line)["timestamp"]))
        except ValueError:
            continue
    return {"ragpulse": hourly(at_s, [1.0] * len(at_s), is_sum=True)}


def main(folder: Path) -> None:
    """Print the record of every series."""
    wins, held = [], []
    for name, values in recorded(folder).items():
        rows, inside = backtest(np.maximum(values, 0.0), season_of(HOUR_S), 24)
        error = {row.method: row.mase_ratio for row in rows}
        wins.append([error["combination"] < error[base] for base in ("last value", "as a day ago")])
        held.append(inside)
        figures = "  ".join(f"{method} {value:.3f}" for method, value in error.items())
        print(f"{name:20} {figures}  origins {rows[0].n_origins:2}  range holds {inside:.0%}")
    last, day = np.sum(wins, axis=0)
    print(f"beats last value {last}/{len(wins)}, as a day ago {day}/{len(wins)}, "
          f"ranges hold {np.mean(held):.0%}")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))

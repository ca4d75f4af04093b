"""Recorded demand by the hour: the nineteen series of the record, and others to choose by."""

import csv
import gzip
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl

HOUR_S = 3600.0
BUSY = 0.6  # of the hours of a client: fewer is no demand to foresee


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


def others(folder: Path) -> dict[str, np.ndarray]:
    """Series outside the nineteen: jobs of single teams and pools, and single clients."""
    found = {
        f"jobs {path.name[6:11]}": table(path, "time", "total_job_num")
        for path in sorted((folder / "helios").glob("Earth_vc*.gz"))
    }
    for column in ("submit_job_all", "end_gpu_num"):
        path = folder / "helios/Venus_cluster_throughput.csv"
        found[f"venus {column}"] = table(path, "time", column, is_sum=True)[: 24 * 45]
    return found | _philly_teams(folder) | _clients(folder) | _pictures(folder)


def _philly_teams(folder: Path) -> dict[str, np.ndarray]:
    jobs = pl.read_csv(folder / "philly/philly.csv").drop_nulls("timestamp")
    found = {}
    for (team,), part in jobs.group_by("cluster", maintain_order=True):
        at_s = part["timestamp"].str.to_datetime().dt.epoch("s").cast(pl.Float64).to_list()
        values = hourly(at_s, [1.0] * len(at_s), is_sum=True)[-24 * 45 :]
        if len(part) > 24 * 60 and len(values) == 24 * 45:
            found[f"philly {team}"] = values
    return found


def _clients(folder: Path) -> dict[str, np.ndarray]:
    rates = pl.read_parquet(folder / "servegen/servegen_client_rates.parquet")
    found = {}
    for (model, client), part in rates.group_by("model", "client", maintain_order=True):
        values = hourly(part["t_s"].to_list(), part["rate_rps"].to_list(), is_sum=False)
        if len(values) >= 24 * 9 and (values > 0).mean() > BUSY:
            found[f"{model} {client}"] = values
    return dict(sorted(found.items())[::3])


def _pictures(folder: Path) -> dict[str, np.ndarray]:
    rows = pl.read_csv(folder / "alibaba_genai_2026/lora_request_trace.csv.gz")
    at_s = rows["gmt_create"].str.to_datetime().dt.epoch("s").cast(pl.Float64).to_list()
    return {"pictures": hourly(at_s, [1.0] * len(at_s), is_sum=True)}

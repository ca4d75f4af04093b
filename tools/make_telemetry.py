"""Write made-up telemetry of a large fleet as Parquet, one file for each fifty devices.

python tools/make_telemetry.py FOLDER [--gpus 10000] [--days 7] [--step 30]
"""

import argparse
from pathlib import Path

import numpy as np
import polars as pl

PER_FILE = 50


def device(random: np.random.Generator, at_s: np.ndarray, k: int) -> dict[str, np.ndarray]:
    """One device: busy by day, a fifth of them always idle."""
    hour = at_s % 86400 / 3600
    level = 0.0 if k % 5 == 0 else 0.5 + 0.4 * np.sin((hour - 8) / 24 * 2 * np.pi)
    util = np.clip(level + (0.1 * random.standard_normal(len(at_s)) if k % 5 else 0.0), 0.0, 1.0)
    return {
        "timestamp": at_s,
        "gpu": np.full(len(at_s), k % 8),
        "hostname": np.full(len(at_s), f"node-{k // 8:05d}"),
        "namespace": np.full(len(at_s), f"team-{k % 6}"),
        "DCGM_FI_DEV_GPU_UTIL": np.round(util * 100).astype(np.int16),
        "DCGM_FI_PROF_SM_ACTIVE": (util * 0.7).astype(np.float32),
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (util * 0.3).astype(np.float32),
        "DCGM_FI_DEV_POWER_USAGE": (100 + 550 * util).astype(np.float32),
        "DCGM_FI_DEV_FB_USED": np.full(len(at_s), 20_000, dtype=np.int32),
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--step", type=int, default=30)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    at_s = np.arange(1_760_000_000, 1_760_000_000 + int(asked.days * 86400), asked.step)
    for first in range(0, asked.gpus, PER_FILE):
        random = np.random.default_rng(first)
        parts = [
            pl.DataFrame(device(random, at_s, k))
            for k in range(first, min(first + PER_FILE, asked.gpus))
        ]
        pl.concat(parts).write_parquet(asked.folder / f"part-{first // PER_FILE:05d}.parquet")


if __name__ == "__main__":
    main()

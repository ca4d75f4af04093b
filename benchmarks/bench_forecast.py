"""Forecasts of recorded demand, a day ahead, beside last value and "as a day ago".

    python benchmarks/bench_forecast.py TRACES [--others]

TRACES is the folder of recorded traces. Prints one line a series, and how many are won. With
--others the series by which constants were chosen, instead of the nineteen of the record.
"""

import sys
from pathlib import Path

import numpy as np
from forecast_series import HOUR_S, others, recorded

from gpuplan.forecast.predict import backtest, season_of


def main(series: dict[str, np.ndarray]) -> None:
    """Print the record of every series."""
    errors, held = [], []
    for name, values in series.items():
        rows, inside = backtest(np.maximum(values, 0.0), season_of(HOUR_S), 24)
        error = {row.method: row.mase_ratio for row in rows}
        errors.append([error[m] for m in ("combination", "last value", "as a day ago")])
        held.append(inside)
        figures = "  ".join(f"{method} {value:.3f}" for method, value in error.items())
        print(f"{name:20} {figures}  origins {rows[0].n_origins:2}  range holds {inside:.0%}")
    table = np.array(errors)
    for place, base in ((1, "last value"), (2, "as a day ago")):
        wins = int((table[:, 0] < table[:, place]).sum())
        ratio = np.exp(np.log((table[:, 0] + 0.01) / (table[:, place] + 0.01)).mean())
        print(f"beats {base!r} on {wins} of {len(table)} ({wins / len(table):.0%}), "
              f"errors {ratio:.2f} of its (geometric mean)")  # fmt: skip
    print(f"ranges hold {np.mean(held):.0%}")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    main(others(folder) if "--others" in sys.argv else recorded(folder))

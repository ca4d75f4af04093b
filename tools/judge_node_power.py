"""Print how well machines at the wall are predicted that no constant and no form has seen.

python tools/judge_node_power.py [seeds]
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from validation.node_power_folds import folds, over_machines, over_rows  # noqa: E402


def main() -> int:
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rows, machines = [], []
    for seed in range(n_seeds):
        found = folds(seed)
        rows.append(over_rows(found))
        machines.append(over_machines(found))
        print(f"shuffle {seed}: median {rows[-1]:.1%} over runs, {machines[-1]:.1%} over machines")
        for fold in found:
            median = float(np.median(fold.errors))
            print(f"  {median:6.1%}  {len(fold.errors):3} runs  {fold.form}, boards at "
                  f"{fold.saturated_frac:.0%}: {', '.join(fold.machines)}")  # fmt: skip
    print(f"all shuffles: runs {min(rows):.1%} to {max(rows):.1%}, "
          f"machines {min(machines):.1%} to {max(machines):.1%}")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Hold the simulator to fresh streams, by SGLang's rules in plain Python.

python tools/check_sglang.py [--first SEED] [--seeds 17] [--requests 60]

The rules equal the real scheduler in every request of every run so far; they and the streams are
kept outside the repository (set GPUPLAN_SHARED_DATA). Ends with 1 where any request differs.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from oracles.sglang_runs import Case, columns_of, differing, ours  # noqa: E402
from shared_data import SHARED  # noqa: E402

ORACLE = SHARED.parent / "oracles" / "sglang"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=17)
    parser.add_argument("--requests", type=int, default=60)
    given = parser.parse_args()
    if not ORACLE.is_dir():
        print(f"{ORACLE} is kept outside the repository; set GPUPLAN_SHARED_DATA")
        return 2
    sys.path.insert(0, str(ORACLE))
    n, n_wrong = 0, 0
    for seed in range(given.first, given.first + given.seeds):
        for name, case in fresh(seed, given.requests):
            wrong = differing(ours(as_columns(case)), true_answer(case))
            n, n_wrong = n + 1, n_wrong + bool(wrong)
            if wrong:
                print(f"seed {seed}, {name}: {', '.join(wrong)}")
    print(f"{n} streams, {n_wrong} differ")
    return int(n_wrong > 0)


def fresh(seed: int, n_requests: int) -> Iterator[tuple[str, Case]]:
    """Streams of every kind, with and without overlap."""
    made = importlib.import_module("make_cases").cases(1, n_requests, first=seed)
    for name, case in made.items():
        for is_ahead in (False, True):
            copied = json.loads(json.dumps(case))
            copied["limits"]["is_ahead"] = is_ahead
            yield f"{'overlap' if is_ahead else 'sync'} {name}", copied


def as_columns(case: Case) -> Case:
    return case | {"requests": columns_of(case["requests"])}


def true_answer(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = importlib.import_module("sglang_rules").Rules(case).run()
    return found


if __name__ == "__main__":
    sys.exit(main())

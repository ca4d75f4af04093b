"""Hold the simulator to fresh streams that SGLang's own scheduler serves on a clock.

python tools/check_sglang.py --python ENVIRONMENT/bin/python [--path FOLDER] [--kept FILE]
    [--first 1] [--seeds 2] [--mixes 100] [--write]

`--python` is an environment with SGLang (`--path`: or a folder of pip --target); `--kept` a file of
its answers, so that a run that was ended goes on; `--write` puts the counts of the run on the page
of validation. The harness is kept outside the repository (set GPUPLAN_SHARED_DATA). Ends with 1
where any request differs.
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

from oracles.asking import Engine, note  # noqa: E402
from oracles.sglang_mixes import mixed  # noqa: E402
from oracles.sglang_runs import MEASURED, Case, columns_of, differing, ours  # noqa: E402
from shared_data import SHARED  # noqa: E402

ORACLE = SHARED.parent / "oracles" / "sglang"


def main() -> int:
    given = asked()
    if not ORACLE.is_dir():
        print(f"{ORACLE} is kept outside the repository; set GPUPLAN_SHARED_DATA")
        return 2
    sys.path.insert(0, str(ORACLE))
    engine = started(given.python, given.path, given.kept)
    version, counts = engine.version, {"streams": 0, "differ": 0, "requests": 0}
    for name, case in streams(given):
        answer = engine.answer(case)
        wrong = [answer["error"]] if "error" in answer else differences(case, answer)
        counts["streams"] += 1
        counts["differ"] += bool(wrong)
        counts["requests"] += len(case["requests"])
        if wrong:
            print(f"SGLang {version}, {name}: {', '.join(wrong)}", flush=True)
        if counts["streams"] % 50 == 0:
            print(f"SGLang {version}: {counts}", flush=True)
    print(f"SGLang {version}: {counts}")
    engine.close()
    if given.write:
        note(MEASURED, version, counts)
    return int(counts["differ"] > 0)


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--kept", type=Path, help="answers of the engine, to go on from")
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2, help="streams of every kind of load")
    parser.add_argument("--mixes", type=int, default=0, help="streams with all settings drawn")
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--write", action="store_true", help="the counts are the page's figures")
    return parser.parse_args()


def started(python: Path, path: Path | None, kept: Path | None) -> Engine:
    """SGLang's own scheduler, to be asked."""
    script = ROOT / "tests" / "oracles" / "sglang" / "real.py"
    return Engine([str(python), str(script), str(ORACLE)], path=path, kept=kept)


def streams(given: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    """Of every kind of load by seed, with and without overlap; then those of which all is drawn."""
    for seed in range(given.first, given.first + given.seeds):
        made = importlib.import_module("make_cases").cases(1, given.requests, first=seed)
        for name, case in made.items():
            for is_ahead in (False, True):
                copied = json.loads(json.dumps(case))
                copied["limits"]["is_ahead"] = is_ahead
                yield f"seed {seed}, {'overlap' if is_ahead else 'sync'} {name}", copied
    for number in range(given.first, given.first + given.mixes):
        yield f"mix {number}", mixed(number)


def differences(case: Case, answer: dict[str, Any]) -> list[str]:
    return differing(ours(case | {"requests": columns_of(case["requests"])}), answer)


if __name__ == "__main__":
    sys.exit(main())

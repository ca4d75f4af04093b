"""What a plan costs: CPU-seconds of a fresh process, and warm, for the examples.

    python benchmarks/bench_plan.py [--repeat 3]

Process time counts work, not waiting, but a core that is shared with others still runs slower.
Run it twice: the first run after a change compiles kernels.
"""

import argparse
import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DAY = "2026-11-01"
TARGETS = (
    "examples/chat.yaml", "examples/which-gpu.yaml", "examples/coding-agents.yaml",
    "examples/large-training.yaml", "Llama-3.3-70B, 6000 users, chat",
)  # fmt: skip


def fresh_s(target: str) -> float:
    """CPU-seconds of `gpuplan plan` as a new process."""
    before = os.times()
    command = [sys.executable, "-m", "gpuplan", "plan", target, "--as-of", DAY, "--json"]
    subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system


def warm_s(target: str) -> float:
    """CPU-seconds of the verb once everything is loaded."""
    from gpuplan.domain.plan_request import PlanRequest  # noqa: PLC0415
    from gpuplan.pipeline.plan import plan  # noqa: PLC0415

    request = PlanRequest(target=target, today=date.fromisoformat(DAY))
    plan(request)
    start = time.process_time()
    plan(request)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    print(f"{'plan':40} {'fresh, CPU-s':>14} {'warm, CPU-s':>12}")
    for target in TARGETS:
        best = min(fresh_s(target) for _ in range(repeat))
        print(f"{target:40} {best:14.2f} {warm_s(target):12.2f}")


if __name__ == "__main__":
    main()

"""Selection beside trying everything and beside taking the cheapest option for each workload.

    python benchmarks/peers/selection.py [--problems 300]

Drawn problems small enough to try everything. Greedy: the workloads in turn, each takes the option
that is cheapest beside what is already there and still feasible; what many planners do.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from fakes.selection import brute_force_usd, draw
from gpuplan.domain.plan.selection import Conflict, SelectionProblem
from gpuplan.selection.choose import select


def greedy_usd(problem: SelectionProblem) -> float | None:
    """The cost of choosing workload by workload; None: the last ones found no room."""
    held: list[object] = []
    usd = None
    for name in dict.fromkeys(option.workload for option in problem.options):
        own = [option for option in problem.options if option.workload == name]
        tried = [(_usd(problem, [*held, option]), option) for option in own]
        fits = [(cost, place) for place, (cost, _) in enumerate(tried) if cost is not None]
        if not fits:
            return None
        usd, place = min(fits)
        held.append(tried[place][1])
    return usd


def _usd(problem: SelectionProblem, options: list) -> float | None:
    found = select(replace(problem, options=tuple(options)))
    return None if isinstance(found, Conflict) else found.worth_usd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=300)
    n = parser.parse_args().problems
    spent = {"ours": 0.0, "everything": 0.0, "greedy": 0.0}
    n_feasible = n_equal = n_lost = 0
    gaps: list[float] = []
    for seed in range(n):
        problem = draw(seed)
        begun = time.process_time()
        best = brute_force_usd(problem)
        spent["everything"] += time.process_time() - begun
        begun = time.process_time()
        found = select(problem)
        spent["ours"] += time.process_time() - begun
        if best is None:
            assert isinstance(found, Conflict)
            continue
        n_feasible += 1
        n_equal += abs(found.worth_usd - best) < 0.006
        begun = time.process_time()
        taken = greedy_usd(problem)
        spent["greedy"] += time.process_time() - begun
        n_lost += taken is None
        gaps += [] if taken is None or best <= 0 else [taken / best - 1]
    gaps.sort()
    print(f"{n} drawn problems, {n_feasible} with a solution")
    print(
        f"gpuplan: {n_equal} of {n_feasible} equal to trying everything, {spent['ours']:.1f} CPU-s"
    )
    print(f"trying everything: {spent['everything']:.1f} CPU-s")
    dearer = sum(gap > 1e-4 for gap in gaps)
    print(
        f"greedy: no answer to {n_lost}, dearer in {dearer}, "
        f"p90 {gaps[int(0.9 * len(gaps))]:.1%}, worst {gaps[-1]:.1%}, {spent['greedy']:.1f} CPU-s"
    )


if __name__ == "__main__":
    main()

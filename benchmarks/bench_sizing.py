"""CPU seconds of sizing one model: all accelerators exhaustively, lazily, and one type.

    python benchmarks/bench_sizing.py

Llama-3.3-70B in FP8 with the promises of the chat example; the price is one per accelerator. CPU
time of the process, compiled code loaded; the best of two.
"""

import time
from dataclasses import replace
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.sizing import Sizing, SizingOptions
from gpuplan.domain.scenario.terms import Choice
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.studies.sizing.workload import size_workload

CHAT = Path(__file__).parents[1] / "examples" / "chat.yaml"
N_TRIES = 2


def sized(cards: tuple[str, ...], *, is_exhaustive: bool) -> tuple[Sizing, float]:
    scenario = read_scenario(CHAT)
    policy = replace(scenario.policy, accelerators=Choice(allowed=cards))
    scenario = replace(scenario, policy=policy)
    around = SizingContext(
        catalog=read_catalog(),
        options=SizingOptions(is_exhaustive=is_exhaustive),
    )
    best_s = float("inf")
    for _ in range(N_TRIES):
        start_s = time.process_time()
        found = size_workload(scenario.workloads[0], scenario, around)
        best_s = min(best_s, time.process_time() - start_s)
    return found, best_s


def main() -> None:
    print(f"{'what':<28} {'CPU s':>6} {'sized':>6} {'skipped':>8} {'rejected':>9}  best")
    for name, cards, is_exhaustive in (
        ("one type, lazily", ("H100",), False),
        ("all accelerators, lazily", (), False),
        ("all accelerators, all sized", (), True),
    ):
        found, seconds = sized(cards, is_exhaustive=is_exhaustive)
        best = found.sized[0]
        print(
            f"{name:<28} {seconds:6.2f} {len(found.sized):6d} {len(found.skipped):8d} "
            f"{len(found.rejected):9d}  {best.n_replicas} x {best.candidate.name}"
        )


if __name__ == "__main__":
    main()

"""Sized fleets replayed with ten times the requests: is any too small, is one replica too many?

    python benchmarks/replay_sizing.py

Llama-3.3-70B in FP8 with lognormal lengths on three accelerators, at three rates, under three sets
of promises, for Poisson and bursty arrivals. Takes one to two minutes of CPU.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.sizing import SizingOptions
from gpuplan.domain.scenario.demand import LatencyLimit, LatencyMetric, Slo, Statistic, TokenLengths
from gpuplan.domain.scenario.terms import Choice
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.simulator import FleetSimulator, SimulatedRun
from gpuplan.studies.sizing.task import SizingContext, task_of

CHAT = read_scenario(Path(__file__).parents[1] / "examples" / "chat.yaml")
CATALOG = read_catalog()
CARDS = (("h100-sxm", 2), ("b200-sxm", 1), ("mi300x", 2))
RATES = (2.0, 7.0, 23.0)
FRESH_DRAW = 5
LENGTHS = {
    "input": TokenLengths(shape="lognormal", mean_tokens=2200, p50_tokens=1500, p95_tokens=6000),
    "output": TokenLengths(shape="lognormal", mean_tokens=350, p50_tokens=250, p95_tokens=950),
}


def limit(metric: LatencyMetric, statistic: Statistic, limit_s: float) -> LatencyLimit:
    return LatencyLimit(metric=metric, statistic=statistic, limit_s=limit_s)


PROMISES = (
    (limit("ttft", "p95", 1.0), limit("tpot", "p95", 0.04)),
    (limit("ttft", "p99", 1.5), limit("tpot", "p99", 0.06)),
    (limit("e2e", "p95", 18.0),),
)


def tools(
    card: str, tp: int, rate: float, limits: tuple[LatencyLimit, ...], cv: float
) -> tuple[ServingSizer, FleetSimulator, FleetSimulator] | None:
    [workload] = CHAT.workloads
    work = replace(
        workload.work,
        slo=Slo(limits=limits),
        request=replace(workload.work.request, **LENGTHS),
        arrivals=replace(
            workload.work.arrivals,
            peak_requests_per_s=rate,
            mean_requests_per_s=rate,
            burstiness_ratio=cv,
        ),
    )
    workload = replace(workload, work=work)
    policy = replace(CHAT.policy, accelerators=Choice(allowed=(card,)))
    scenario = replace(CHAT, policy=policy)
    task = task_of(workload, scenario, SizingContext(catalog=CATALOG))
    pruned, _ = candidates_of(task)
    found = [c for c in pruned.accepted if c.layout.tp == tp and c.share is None]
    if not found:
        return None
    short, long = (
        replace(
            task, context=SizingContext(catalog=CATALOG, options=SizingOptions(n_requests=n))
        ).simulator(found[0])
        for n in (6_000, 60_000)
    )
    return ServingSizer(task, short), short, long


def keeps(trial: SimulatedRun) -> bool:
    is_kept = all(seen.value_s <= limit.limit_s for limit, seen in trial.latencies)
    return is_kept and not trial.is_overloaded


def main() -> None:
    n_cases = n_small = n_large = 0
    for (card, tp), rate, limits, cv in product(CARDS, RATES, PROMISES, (1.0, 2.0)):
        made = tools(card, tp, rate, limits, cv)
        sized = None if made is None else made[0].size()
        if made is None or not hasattr(sized, "n_serving"):
            continue
        n, long = sized.n_serving, made[2]
        n_cases += 1
        n_small += not keeps(long.run(rate, n, draw=FRESH_DRAW))
        n_large += n > 1 and keeps(long.run(rate, n - 1, draw=FRESH_DRAW))
    print(f"{n_cases} fleets: {n_small} too small, {n_large} would keep all with one replica fewer")


if __name__ == "__main__":
    main()

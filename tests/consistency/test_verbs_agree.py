"""A plan of a service is what simulate and fit say of the same fleet."""

import numpy as np
from hypothesis import assume, given, settings

from consistency.plans import planned
from consistency.strategies import KINDS
from gpuplan import api
from gpuplan.domain.requests.requests import FitRequest
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest, SimulateRequest
from gpuplan.domain.traffic.drawn import DrawnLoad

FEW = settings(settings.get_profile("consistency"), max_examples=12)


def service(tree):
    """The plan of a service without a cached prefix, which simulate draws in another way."""
    work = tree["workloads"][0]
    assume("prefix_hit_frac" not in work["request"])
    answer = planned(tree)
    assume(answer.plan is not None)
    pool = answer.plan.pools[0]
    assume(not pool.layout.share)
    assert not pool.layout.role, "disaggregated unless it is asked for"
    return work, answer, pool


def simulated(work, pool, *, seed=11):
    demand, request = work["demand"], work["request"]
    load = DrawnLoad(
        requests_per_s=demand["requests_per_s"],
        law="gamma" if "burstiness_cv" in demand else "poisson",
        burstiness_ratio=demand.get("burstiness_cv"),
        input=TokenLengths(shape="fixed", mean_tokens=request["input_tokens"]),
        output=TokenLengths(shape="fixed", mean_tokens=request["output_tokens"]),
        n_requests=8000,
    )
    layout = pool.layout
    asked = SimulateRequest(
        tp=layout.tp,
        n_replicas=pool.n_replicas - pool.n_spare_replicas,
        precision=pool.precision,
        scheduler=EngineRequest(
            replica=ReplicaRequest(tp=layout.tp, pp=layout.pp, dp=layout.dp, ep=layout.ep)
        ),
        seed=seed,
        warmup_s=None,
    )
    n = layout.tp * layout.pp * layout.dp
    return api.simulate(
        work["model"], f"{n}x{pool.accelerator}", api.drawn_load(load, seed=seed), asked
    )


@FEW
@given(KINDS["chat"])
def test_a_plan_is_what_simulate_says(tree):
    work, answer, pool = service(tree)
    found = simulated(work, pool)
    times, n = found.outcome.times, len(found.outcome.times.ttft_s)
    rows = slice(n // 5, n - n // 20)
    columns = {"ttft p95": times.ttft_s[rows], "tpot p95": times.tpot_s[rows]}
    # The plan's own run of a bursty load is as far from the mean of many as this one.
    least = 0.15 * work["demand"].get("burstiness_cv", 1.0)
    for row in answer.plan.slo.promises:
        values = np.asarray(columns[row.what])
        parts = [np.quantile(part, 0.95) for part in np.array_split(values, 8)]
        chance = 7 * np.sqrt(2) * np.std(parts, ddof=1) / np.sqrt(8)
        gap = abs(float(np.quantile(values, 0.95)) - row.reached_s.value)
        assert gap <= max(chance, least * row.reached_s.value), row.what


@FEW
@given(KINDS["chat"])
def test_a_planned_replica_fits(tree):
    work, _, pool = service(tree)
    request = work["request"]
    asked = FitRequest(
        tp=pool.layout.tp,
        precision=pool.precision,
        context_tokens=request["input_tokens"] + request["output_tokens"],
    )
    n = pool.layout.tp * pool.layout.pp * pool.layout.dp
    assume(n == pool.layout.tp)
    assert api.fit(work["model"], f"{n}x{pool.accelerator}", asked).fits


def test_services_of_several_models_reach_the_level_together():
    """Errors of different models are their own: each service is sized for more than the level."""
    names = {"embed": "BAAI/bge-m3", "rerank": "BAAI/bge-reranker-v2-m3"}
    works = [
        {
            "name": name,
            "kind": "online_inference",
            "model": model,
            "request": {"input_tokens": 256, "output_tokens": 0},
            "demand": {"requests_per_s": 900},
            "slo": {"e2e_p95_s": 0.3},
        }
        for name, model in names.items()
    ]
    policy = {"accelerators": {"allowed": ["L4"]}}
    tree = {"version": 1, "name": "two", "workloads": works, "policy": policy}
    answer = planned(tree)
    each = [row.probability_frac for row in answer.decision.comparison if row.is_chosen]
    whole = answer.decision.risk.probability_frac
    assert answer.decision.risk.level_frac == 0.8
    assert all(odds >= 0.8**0.5 - 0.01 for odds in each)
    assert 0.79 <= whole <= min(each)

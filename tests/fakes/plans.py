"""A whole plan with a value in every field, for readers and writers of plans."""

from gpuplan.domain.plan.answer import (
    Alternative,
    Answer,
    ChosenPlan,
    Crossover,
    Curve,
    Explanation,
    LimitUse,
    PlannedLoad,
    PlannedPool,
    PlanProof,
    PlanProvenance,
    PoolUse,
    PriceScenario,
    PurchaseLine,
    RegretRow,
    Rejected,
    SloResult,
    SloResults,
    TornadoBar,
    Uncertainty,
    WhyNot,
)
from gpuplan.domain.plan.bill import CashLine, PeriodCost, PlanBill, PlanCostLine
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.domain.plan.comparison import (
    ComparisonRow,
    Decision,
    ParetoRow,
    PlanRisk,
    RiskFleet,
    RowEvidence,
)
from gpuplan.domain.provenance import Assumption, Estimate


def estimate(value: float, spread: float = 0.1) -> Estimate:
    return Estimate(
        value=value, low=value * (1 - spread), high=value * (1 + spread), tier="simulated"
    )


def pool(n: int = 6) -> PlannedPool:
    line = PurchaseLine(
        purchase="on_demand", offer="n2-H100x2", cloud="acme", region="eu-1", n_nodes=n // 2,
        n_accelerators_per_node=2, paid_frac=1.0, price_usd_per_node_h=estimate(5.9, 0.0),
        usd_per_month=n // 2 * 5.9 * 730, price_date="2026-08-22", price_source="price-list",
    )  # fmt: skip
    return PlannedPool(
        workload="chat", accelerator="h100-sxm", n_accelerators=n, n_replicas=n // 2,
        layout=PoolLayout(tp=2, pp=1),
        precision="fp8", source="on_demand acme n2-H100x2 eu-1", n_spare_replicas=1,
        engine="vllm 0.11", purchases=(line,),
        use=PoolUse(peak_frac=0.61, mean_frac=0.3, safe_frac=0.72,
                    remark="keeps its promises up to 72 %: 90 % would break them"),
    )  # fmt: skip


def comparison_row(accelerator: str = "h100-sxm", **fields: object) -> ComparisonRow:
    found = {
        "workload": "chat", "accelerator": accelerator, "precision": "fp8",
        "layout": PoolLayout(tp=2, pp=1), "n_replicas": 3, "n_accelerators": 6,
        "usd_per_month": 12921.0, "usd_per_million_tokens": 4.2,
        "latency": {"ttft_p95_s": 0.4}, "probability_frac": 0.93, "is_chosen": True,
        "evidence": RowEvidence(
            is_eligible=True, power_w=5400.0, tier="fitted", price_source="on_demand acme n2-H100x2"
        ),
    }  # fmt: skip
    return ComparisonRow(**{**found, **fields})


def decision() -> Decision:
    lost = RowEvidence(
        is_eligible=True, power_w=None, tier="fitted", price_source="",
        reason="weights need 71 GB more", relaxation="tp 8 would fit",
    )  # fmt: skip
    rows = (
        comparison_row(),
        comparison_row(
            "l4", layout=None, n_replicas=0, n_accelerators=0, usd_per_month=None, latency={},
            usd_per_million_tokens=None, probability_frac=None, is_chosen=False, evidence=lost,
        ),
    )  # fmt: skip
    front = ParetoRow(
        workload="chat", accelerator="h100-sxm", precision="fp8", n_accelerators=6,
        usd_per_month=12921.0, latency_frac=0.2, power_w=5400.0, risk_frac=0.07,
    )  # fmt: skip
    safe = RiskFleet(
        level_frac=0.95, fleet="8 x h100-sxm (4 replicas, TP2)", usd_per_month=17228.0,
        extra_usd_per_month=4307.0, probability_frac=0.97,
    )  # fmt: skip
    risk = PlanRisk(
        level_frac=0.8, probability_frac=0.93, by_cause={"model error": 0.94, "demand": 0.99},
        fleets=(safe,), measurement_usd_per_month=300.0, lines=("measure one replica",),
    )  # fmt: skip
    return Decision(comparison=rows, pareto=(front,), risk=risk)


def bill(usd_per_month: float, n_months: int = 36) -> PlanBill:
    total, span_s = n_months * usd_per_month, n_months * 730 * 3600.0
    line = CashLine(
        what="rent", workload="chat", name="n2-H100x2", source="price-list, 2026-08-22",
        start_s=0.0, span_s=span_s, usd=total,
    )  # fmt: skip
    month = PeriodCost(start_s=0.0, span_s=span_s, n_accelerators=6, usd_per_month=usd_per_month)
    return PlanBill(
        cost_lines=(PlanCostLine(what="rent", usd_per_month=usd_per_month),),
        once_usd=0.0, total_usd=total, span_s=span_s, present_value_usd=total,
        cash_flow=(line,), by_period=(month,),
    )  # fmt: skip


def chosen(n: int = 6, *, is_kept: bool = True, is_within: bool = True) -> ChosenPlan:
    promise = SloResult(
        workload="chat", what="ttft p95", limit_s=2.0, reached_s=estimate(0.4), is_kept=is_kept
    )
    return ChosenPlan(
        pools=(pool(n),),
        cost_usd_per_month=estimate(n // 2 * 5.9 * 730),
        power_w=estimate(n * 900.0),
        slo=SloResults(is_kept=is_kept, promises=(promise,)),
        bill=bill(n // 2 * 5.9 * 730),
        limits=(
            LimitUse(name="budget.usd_per_month", used="$12,921", limit="$20,000",
                     used_frac=0.646, is_kept=is_within),
        ),
        energy_j_per_month=1e9,
        carbon_kg_per_month=None,
    )  # fmt: skip


def explanation() -> Explanation:
    other = WhyNot(
        question="the priciest", fleet="2 x b200-sxm", answer="dearer at this load",
        extra_usd_per_month=4000.0,
    )  # fmt: skip
    return Explanation(
        why=("two replicas carry the load, one more survives a failure",),
        why_not=(other,),
        binding=("tpot p95 decides the number of replicas",),
        crossovers=(Crossover(what="load", at="5.2 requests/s", then="4 x b200-sxm is cheaper"),),
        next_spend=("one more replica raises the safe load by 40 %",),
        naive=(other,),
    )


def uncertainty() -> Uncertainty:
    return Uncertainty(
        n_samples=200, seed=0, cost_usd_per_month=estimate(12921.0), kept_frac=0.93,
        least_regret="6 x h100-sxm",
        rows=(RegretRow(fleet="6 x h100-sxm", mean_usd_per_month=13000.0,
                        p95_regret_usd_per_month=900.0, kept_frac=0.93),),
        tornado=(
            TornadoBar(what="demand", span="−20 % … +20 %", low_usd_per_month=9000.0,
                       high_usd_per_month=17228.0),
            TornadoBar(what="price", span="−40 % … +20 %", low_usd_per_month=7752.0,
                       high_usd_per_month=15505.0),
        ),
        prices=(PriceScenario(name="−20 %", usd_per_month=10337.0, best_fleet="6 x h100-sxm",
                              best_usd_per_month=10337.0),),
        inputs=("demand", "prices"),
    )  # fmt: skip


def answer(n: int = 6, *, users: int = 6000, plan: ChosenPlan | None = None) -> Answer:
    return Answer(
        name="chat for 6000 users",
        plan=plan or chosen(n),
        alternatives=(
            Alternative(kind="next cheapest", fleet="4 x b200-sxm", usd_per_month=16000.0,
                        extra_usd_per_month=3079.0, power_w=8000.0, remark="dearer"),
        ),
        rejected=(
            Rejected(candidate="h100-sxm tp1 fp8", workload="chat", constraint="memory",
                     reason="weights leave no room", relaxation="tensor parallel over 2"),
        ),
        assumptions=(
            Assumption(what="growth", value="0", why="none given", change="growth.per_month_frac"),
        ),
        load=(
            PlannedLoad(workload="chat", kind="online_inference", model="Llama-3.3-70B",
                 peak_requests_per_s=3.33, mean_requests_per_s=None, residence_s=11.3,
                 n_in_flight=37.6, lines=("6000 users x 20 % x 10 requests/h = 3.33 requests/s",)),
        ),
        explanation=explanation(),
        uncertainty=uncertainty(),
        charts=(
            Curve(chart="Utilization over the week", name="busy", x_name="hour of the week",
                  y_name="share of capacity, %", x=(0.0, 12.0, 24.0), y=(20.0, 61.0, 30.0)),
            Curve(chart="Utilization over the week", name="safe", x_name="hour of the week",
                  y_name="share of capacity, %", x=(0.0, 24.0), y=(72.0, 72.0)),
        ),
        proof=PlanProof(objective="cost", bill_usd=465156.0, bound_usd=465156.0, gap_frac=0.0,
                    n_rounds=1, status="optimal"),
        decision=decision(),
        provenance=PlanProvenance(
            package_version="0.1.0", catalog_sha256="ab" * 32, scenario_sha256="cd" * 32, seed=0,
            as_of="2026-11-16",
            scenario={"version": 1, "name": "chat for 6000 users",
                      "workloads": [{"name": "chat", "demand": {"users": users}}]},
        ),
    )  # fmt: skip

"""Job kinds side by side, owned nodes and teams: no plan that its own numbers contradict."""

from math import ceil, isfinite

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuplan
from gpuplan.catalog.load import read_catalog
from gpuplan.pipeline.design import design_plan

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
REQUEST = {"input_tokens": 500, "output_tokens": 100}
OFFERS = [
    {"accelerator": "H100", "usd_per_accelerator_h": 3.0},
    {"accelerator": "L40S", "usd_per_accelerator_h": 1.2},
]
RATES = {"H100": 15.0, "L40S": 5.0}
BATCH_FRAC, SERVING_FRAC = 0.95, 0.7  # utilization at which a given capacity is counted
DAYS = [1, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 10, 9, 10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]


def capacity() -> list:
    return [{"accelerator": name, "requests_per_s": rate} for name, rate in RATES.items()]


def workload(name: str, kind: str, **rest) -> dict:
    given = {"model": MODEL, "request": REQUEST, "capacity": capacity()}
    return {"name": name, "kind": kind, **given, **rest}


def chat(rate: float, *, is_daily: bool, **rest) -> dict:
    demand = {"requests_per_s": rate} | ({"hourly_profile": DAYS} if is_daily else {})
    slo = {"ttft_p95_ms": 1000}
    return workload("chat", "online_inference", demand=demand, slo=slo, **rest)


def docs(name: str = "docs", *, hours: float = 24.0, **amount) -> dict:
    return workload(name, "batch_inference", batch={**amount, "deadline_h": hours})


def training(days: float) -> dict:
    run = {"tokens": 5e9, "mfu_frac": 0.4, "deadline_days": days}
    small = "meta-llama/Llama-3.2-1B"
    return {"name": "run", "kind": "pretraining", "model": small, "training": run}


def tree(*works: dict, **rest) -> dict:
    return {"name": "jobs", "workloads": list(works), "prices": {"offers": OFFERS},
            "policy": {"accelerators": {"allowed": ["H100", "L40S"]}, "survive": "none"},
            **rest}  # fmt: skip


def planned(*works: dict, **rest) -> gpuplan.Answer:
    return gpuplan.plan(tree(*works, **rest), n_samples=0)


def paid_h(pool) -> float:
    """Accelerator-hours that a pool pays for in a month."""
    return sum(p.n_nodes * p.n_accelerators_per_node * p.paid_frac * 730 for p in pool.purchases)


def test_a_one_off_job_costs_its_hours_whatever_the_horizon():
    short, long = (
        planned(docs(docs=1e7, hours=48), budget={"horizon_months": n}).plan for n in (3, 36)
    )
    assert short.total_usd == long.total_usd
    least_h = 1e7 / (RATES["H100"] * BATCH_FRAC) / 3600
    assert long.total_usd == pytest.approx(3.0 * least_h, rel=0.01)
    assert long.slo.is_kept


@given(
    n=st.floats(1e4, 1e8), hours=st.floats(1.0, 400.0), rate=st.floats(1.0, 200.0),
    is_daily=st.booleans(), days=st.floats(2.0, 60.0),
    kinds=st.sets(st.sampled_from(["chat", "one-off", "stream", "run"]), min_size=1),
)  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_mix_of_kinds_is_planned_within_its_deadlines(n, hours, rate, is_daily, days, kinds):
    works = {
        "chat": chat(rate, is_daily=is_daily),
        "one-off": docs("heap", docs=n, hours=hours),
        "stream": docs("stream", docs_per_day=n / 10),
        "run": training(days),
    }
    answer = planned(*(works[kind] for kind in sorted(kinds)))
    plan = answer.plan
    assert plan is not None
    assert plan.slo.is_kept
    assert isfinite(plan.total_usd)
    assert plan.total_usd > 0
    assert {pool.workload for pool in plan.pools} == {works[kind]["name"] for kind in kinds}
    for pool in plan.pools:
        assert pool.n_replicas > 0
    deadlines = {p.workload: p for p in plan.slo.promises if p.what == "deadline"}
    assert ("heap" in deadlines) == ("one-off" in kinds)
    for found in deadlines.values():
        assert found.reached_s.value <= found.limit_s * (1 + 1e-9)
    if kinds == {"stream"}:
        _is_enough(plan.pools[0], n / 10 / 86_400, BATCH_FRAC)


def _is_enough(pool, rate: float, ceiling: float) -> None:
    each = RATES["H100" if "h100" in pool.accelerator else "L40S"] * ceiling
    assert pool.n_replicas >= ceil(rate / each - 1e-6)


@given(rate=st.floats(1.0, 60.0), n=st.floats(1e5, 5e6))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_stream_beside_a_service_never_costs_more_than_apart(rate, n):
    both = planned(chat(rate, is_daily=True), docs(docs_per_day=n)).plan
    apart = [planned(chat(rate, is_daily=True)).plan, planned(docs(docs_per_day=n)).plan]
    total = sum(plan.cost_usd_per_month.value for plan in apart)
    assert both.cost_usd_per_month.value <= total * (1 + 1e-6)
    each = RATES["H100"] * BATCH_FRAC * 3600
    assert sum(paid_h(pool) for pool in both.pools) >= n / 24 * 730 / each * (1 - 1e-6)


OWNED = [{"accelerator": "L40S", "nodes": 2, "accelerators_per_node": 4}]


@pytest.mark.parametrize(
    ("rate", "kinds"), [(20.0, {"existing"}), (200.0, {"existing", "on_demand"})]
)
def test_what_is_owned_serves_as_far_as_it_goes(rate, kinds):
    answer = planned(chat(rate, is_daily=False), owned=OWNED)
    lines = [line for pool in answer.plan.pools for line in pool.purchases]
    assert {line.purchase for line in lines} == kinds
    without = planned(chat(rate, is_daily=False)).plan.cost_usd_per_month.value
    assert answer.plan.cost_usd_per_month.value < without
    carried = sum(
        pool.n_replicas * RATES["H100" if "h100" in pool.accelerator else "L40S"] * SERVING_FRAC
        for pool in answer.plan.pools
    )
    assert carried >= rate * (1 - 1e-6)


def test_owned_nodes_that_growth_outruns_are_joined_by_others_later():
    growth = {"per_month_frac": 0.1}
    answer = planned(chat(20.0, is_daily=False), owned=OWNED, growth=growth)
    assert any("your 8 x L40S carry about 28" in line for line in answer.explanation.why)
    purchases = {line.purchase: line for pool in answer.plan.pools for line in pool.purchases}
    assert purchases["existing"].n_nodes == 2
    assert purchases["on_demand"].paid_frac < 1.0


def test_owned_nodes_that_are_replaced_are_named():
    dear = [{**OWNED[0], "accelerator": "L40S", "nodes": 1, "node_max_kw": 60.0}]
    site = {"electricity_usd_per_kwh": 5.0}
    answer = planned(chat(200.0, is_daily=False), owned=dear, site=site)
    assert any("so they are replaced" in line for line in answer.explanation.why)


TEAMS = [{"name": "a", "quota_accelerators": 4}, {"name": "b", "quota_accelerators": 3}]


@pytest.mark.parametrize("quota", [3, 4, 8])
def test_a_quota_limits_what_a_team_takes(quota):
    teams = [{**TEAMS[0], "quota_accelerators": quota}, TEAMS[1]]
    works = chat(40.0, is_daily=False, team="a"), {**docs(docs_per_day=2e6), "team": "b"}
    answer = planned(*works, teams=teams)
    if quota < 4:  # 40 / (15 x 0.7) is 3.8
        assert answer.plan is None
        assert "4 accelerators would be enough" in " ".join(answer.explanation.conflicts)
        return
    taken = {pool.workload: pool.n_replicas for pool in answer.plan.pools}
    assert taken["chat"] <= quota
    assert taken["docs"] <= 3
    uses = {use.name: use for use in answer.plan.limits}
    assert uses["teams.a.quota_accelerators"].is_kept


def test_a_quota_that_binds_makes_the_plan_no_cheaper():
    free, bound = (
        planned(chat(5.0, is_daily=False, team="a"), teams=[{"name": "a", **quota}]).plan
        for quota in ({}, {"quota_accelerators": 1})
    )
    assert free.pools[0].accelerator == "l40s"  # two of them, at $1.20
    assert bound.pools[0].accelerator == "h100-sxm"
    assert bound.cost_usd_per_month.value >= free.cost_usd_per_month.value


def test_higher_priority_goes_first_where_limits_do_not_leave_room_for_all():
    works = (
        chat(40.0, is_daily=False, priority=10),
        {**docs(docs_per_day=2e6), "priority": -1},
    )
    limit = {"survive": "none", "max_accelerators": 4}
    answer = planned(*works, policy=limit)
    assert answer.plan is None
    text = " ".join(answer.explanation.conflicts)
    assert "by priority chat would be served first" in text
    assert "docs (priority -1): no room is left" in text
    assert "would be enough (now 4 accelerators)" in text


def test_a_job_of_days_does_not_pay_the_price_of_a_year():
    year = {"usd_per_accelerator_h": 1.0, "purchase": "reserved", "term_months": 12}
    offers = [*OFFERS, {**OFFERS[0], **year}]
    policy = {"survive": "none", "purchases": ["on_demand", "reserved"]}
    job = planned(docs(docs=1e7, hours=48), prices={"offers": offers}, policy=policy).plan
    assert {line.purchase for line in job.pools[0].purchases} == {"on_demand"}
    service = planned(chat(40.0, is_daily=False), prices={"offers": offers}, policy=policy).plan
    assert {line.purchase for line in service.pools[0].purchases} == {"reserved"}


def scheduled(work: dict, schedule: str | None) -> dict:
    return work if schedule is None else {**work, "schedule": schedule}


@pytest.mark.parametrize(
    ("schedule", "per_month"), [("daily", 365 / 12), ("2/week", 365 / 12 / 3.5), ("monthly", 1.0)]
)
@pytest.mark.parametrize("beside", [False, True])
def test_every_run_of_a_schedule_is_billed_its_own_hours(schedule, per_month, beside):
    """A month of runs costs what one costs, as often as it starts; every verb says so."""
    job = docs(docs=3e6, hours=20)
    others = (chat(20.0, is_daily=False),) if beside else ()
    growth = {"growth": {"per_month_frac": 0.02}, "budget": {"horizon_months": 24}}
    only = {"policy": {"accelerators": {"allowed": ["L40S"]}}, "prices": {"offers": OFFERS[1:]}}
    alone = planned(job, **only)
    answer = planned(*others, scheduled(job, schedule), **growth, **only)
    mine = sum(line.usd for line in answer.plan.bill.cash_flow if line.workload == "docs")
    each = alone.plan.bill.total_usd
    assert mine / 24 == pytest.approx(each * per_month, rel=1e-3)
    total = answer.plan.cost_usd_per_month.value * 24
    assert answer.plan.bill.total_usd == pytest.approx(total, abs=0.05)
    [row] = [row for row in answer.decision.comparison if row.workload == "docs" and row.is_chosen]
    assert row.usd_per_month == pytest.approx(each * per_month, rel=1e-3)
    assert row.evidence.run.total_usd == pytest.approx(each, rel=1e-3)
    assert all(check.ok for check in answer.proof.certificate)
    money = design_plan(answer, read_catalog()).money
    assert money.difference_cents == 0
    mean = sum(p.usd_per_month for p in answer.plan.bill.by_period) / len(
        answer.plan.bill.by_period
    )
    assert mean == pytest.approx(answer.plan.cost_usd_per_month.value, abs=0.01)


def test_a_nightly_run_in_idle_hours_of_a_service_costs_nothing_more():
    work = scheduled({**training(0.5), "training": {"tokens": 2e8, "mfu_frac": 0.4,
                                                    "deadline_days": 1}}, "daily")  # fmt: skip
    owned = [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 8}]
    answer = planned(chat(60.0, is_daily=True), work, owned=owned)
    [pool] = [pool for pool in answer.plan.pools if pool.workload == "run"]
    assert pool.source.startswith("time-sharing")
    assert not [line for line in answer.plan.bill.cash_flow if line.workload == "run"]


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (docs(docs_per_day=1000), "work without an end"),
        (docs(docs=1000, hours=48), "must be at most 24 h"),
        (docs(docs=1000, hours=4), ""),
    ],
)
def test_a_schedule_is_of_runs_that_end_before_the_next(work, words):
    if not words:
        assert planned(scheduled(work, "daily")).plan is not None
        return
    with pytest.raises(gpuplan.InputError, match=words):
        planned(scheduled(work, "daily"))


def test_unknown_schedules_are_named_with_those_that_are_known():
    with pytest.raises(gpuplan.InputError, match="hourly, daily"):
        planned(scheduled(docs(docs=1000), "fortnightly-ish"))

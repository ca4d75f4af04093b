"""R106 to R114: production patterns and connections."""

import json

import pytest
import yaml

from requirements.asking import Ask
from requirements.checks.operation import weekly_peaks
from requirements.checks.scope import rows_of
from requirements.registry import check


@check(
    "R106",
    "simulate --model Llama-3.1-8B --on H100 --rate 40 --input-tokens 600 --output-tokens 200"
    " --duration 20m --fleet examples/fleets/autoscaled-and-spot.yaml",
)
def replicas_follow_the_load_with_cold_starts(ask: Ask) -> None:
    found = ask.document()
    assert found["n_completed"] > 0
    text = str(found)
    assert "cold" in text or "start" in text
    start = ask.document("predict Llama-3.1-8B --on H100 --concurrency 8")["startup_s"]
    parts = sum(one["value"] for name, one in start.items() if name != "total")
    assert start["total"]["value"] == pytest.approx(parts, rel=0.01)
    ask.plan("chat")
    assert "ScaledObject" in ask("render chat.plan.yaml --to keda").out


@check("R107", "design shared-cluster.plan.yaml")
def teams_are_charged_for_what_they_use(ask: Ask) -> None:
    ask.plan("shared-cluster")
    teams = {one["team"]: one["total_cents"] for one in ask.document()["teams"]}
    assert teams["search"] / teams["speech"] == pytest.approx(20 / 16, rel=0.01)
    assert teams["research"] < teams["speech"]


@check("R107", "render shared-cluster.plan.yaml --to kueue")
def queues_of_the_cluster_follow_teams_and_quotas(ask: Ask) -> None:
    ask.plan("shared-cluster")
    queues = [one for one in yaml.safe_load_all(ask().out) if one and one["kind"] == "ClusterQueue"]
    quotas = {}
    for one in queues:
        flavor = one["spec"]["resourceGroups"][0]["flavors"][0]
        quotas[one["metadata"]["name"]] = int(flavor["resources"][0]["nominalQuota"])
    assert sorted(quotas.values()) == [16, 16, 16, 24, 24, 32]
    assert len({one["spec"]["cohort"] for one in queues}) == 1
    made = [one for one in yaml.safe_load_all(ask().out) if one]
    local = {
        one["metadata"]["name"]: one["spec"]["clusterQueue"]
        for one in made
        if one["kind"] == "LocalQueue"
    }
    assert local == {"search-ranking": "search", "speech": "speech", "notebooks": "research"}
    research = next(one for one in queues if one["metadata"]["name"] == "research")
    assert research["spec"]["fairSharing"] == {"weight": "2"}


def _queue(ask: Ask, name: str, quotas: dict[str, int], jobs: list[str], **more: object) -> dict:
    """Jobs of teams with quotas of their own on one node of eight GPUs."""
    rows = ["submit_s,duration_s,gpus,team", *jobs]
    ask.write(f"{name}.csv", "\n".join(rows) + "\n")
    nodes = [{"accelerator": "H100-SXM", "nodes": 1, "accelerators_per_node": 8}]
    nodes[0]["usd_per_accelerator_h"] = 2.0
    teams = [
        {"name": team, "quotas": [{"accelerator": "H100-SXM", "accelerators": n}]}
        for team, n in quotas.items()
    ]
    policy = {"order": "kueue", "blocking": "skip", "preempts": True}
    content = {"name": name, "nodes": nodes, "teams": teams, "policy": policy, **more}
    file = ask.scenario(f"{name}.yaml", content)
    return ask.document(f"simulate {file} --jobs {name}.csv --out {name}-runs.csv")


@check("R107", "simulate even.yaml --jobs even.csv")
def quotas_of_a_simulated_cluster_decide_who_waits(ask: Ask) -> None:
    """Each team submits two jobs of 4 GPUs and one hour at once: the second waits for the first."""
    jobs = [f"{k},3600,4,{team}" for k in range(2) for team in ("ads", "vision")]
    even = _queue(ask, "even", {"ads": 4, "vision": 4}, jobs)
    waits = {one["name"]: one["wait_mean_s"] for one in even["by_team"]}
    assert waits == pytest.approx({"ads": 1800, "vision": 1800}, abs=2)
    tilted = _queue(ask, "tilted", {"ads": 8, "vision": 0}, jobs[::2])
    waits = {one["name"]: one["wait_mean_s"] for one in tilted["by_team"]}
    assert waits["ads"] == pytest.approx(0, abs=2)  # twice the quota: nobody waits
    # Four jobs of 4 GPUs and an hour at $2 fill both hours of the node.
    assert sum(one["used_usd"] for one in even["bills"]) == pytest.approx(32.0)
    assert sum(one["total_usd"] for one in even["bills"]) == pytest.approx(2 * 8 * 2.0, rel=0.01)


@check("R40", "simulate night-8-20.yaml --jobs night-8-20.csv")
def a_night_job_is_preempted_for_the_day_and_goes_on(ask: Ask) -> None:
    """Serving takes 6 of 8 GPUs from one hour to another; a job of 8 waits for the night."""
    for begin, end, work_h in ((8, 20, 20), (6, 22, 12), (9, 18, 11)):
        by_hour = [2 if begin <= hour < end else 0 for hour in range(24)]
        service = {"name": "chat", "team": "chat", "accelerator": "H100-SXM"}
        service |= {"accelerators_per_replica": 3, "replicas_by_hour": by_hour}
        name = f"night-{begin}-{end}"
        jobs = [f"0,{work_h * 3600},8,lab"]
        found = _queue(ask, name, {"chat": 8, "lab": 8}, jobs, services=[service])
        left = work_h - begin  # after the first night; the next begins at `end` of that day
        ends_h = end + left
        (run,) = rows_of(ask.read(f"{name}-runs.csv"))
        assert float(run["end_s"]) == pytest.approx(ends_h * 3600), name
        assert int(run["n_preempted"]) == 1
        bills = {one["team"]: one for one in found["bills"]}
        assert bills["lab"]["used_usd"] == pytest.approx(8 * work_h * 2.0)
        assert bills["chat"]["service_usd"] == pytest.approx(6 * (end - begin) * 2.0)
        whole = sum(one["total_usd"] for one in bills.values())
        assert whole == pytest.approx(8 * ends_h * 2.0)  # used, served and idle: all of it


@check("R109", "design shared-cluster.plan.yaml")
def the_plan_is_charged_to_teams(ask: Ask) -> None:
    ask.plan("shared-cluster")
    found = ask.document()
    assert sum(one["total_cents"] for one in found["teams"]) == found["statement"]["total_cents"]


@check("R109", "diff chat.plan.yaml opencost.json")
def the_plan_is_held_against_actual_cost(ask: Ask) -> None:
    ask.plan("chat")
    ask.write(
        "opencost.json",
        '{"code":200,"data":[{"chat":{"name":"chat","gpuHours":5840,"gpuCost":21000}}]}',
    )
    planned = ask.plan("chat")["plan"]["cost_usd_per_month"]["value"]
    found = ask.document()
    row = found["plan_against_actual"][0]
    assert row["model"] == "meta-llama/Llama-3.3-70B-Instruct"
    assert row["actual_usd"] == pytest.approx(21000)
    assert row["planned_usd"] == pytest.approx(planned, rel=0.01)
    assert row["difference_usd"] == pytest.approx(21000 - planned, rel=0.01)


@check("R109", "diff shared-cluster.plan.yaml week.json")
def idle_cost_and_teams_are_shown(ask: Ask) -> None:
    ask.plan("shared-cluster")
    window = {"start": "2026-11-02T00:00:00Z", "end": "2026-11-09T00:00:00Z"}

    def allocation(namespace: str, usd: float) -> dict[str, object]:
        known = {"properties": {"namespace": namespace}, "window": window}
        return {"name": namespace, "totalCost": usd, "gpuHours": 1000, **known}

    costs = {
        "search-ranking": allocation("search-ranking", 900.0),
        "ads": allocation("ads", 250.0),
        "__idle__": {**allocation("__idle__", 400.0), "name": "__idle__"},
    }
    ask.write("week.json", json.dumps({"code": 200, "data": [costs]}))
    found = ask.document()
    assert found["window_h"] == 168
    rows = {one["what"]: one for one in found["plan_against_actual"]}
    assert rows["search ranking"]["actual_usd"] == 900
    assert rows["idle"]["actual_usd"] == 400
    assert rows["speech"]["actual_usd"] is None
    teams = {one["what"]: one for one in found["teams"]}
    assert teams["search"]["actual_usd"] == 900
    assert teams["ads"]["actual_usd"] == 250
    assert found["actual_usd"] == pytest.approx(1550)
    assert rows["search ranking"]["planned_accelerator_h"] > 0


@check("R110", "design power-shortfall.plan.yaml")
def energy_is_in_the_same_ledger(ask: Ask) -> None:
    ask.plan("power-shortfall")
    found = ask.document()
    energy = found["groups"][0]["energy"]
    kwh = 28.56 * 8760 * 3 * 1.4
    assert energy["facility_kwh"] == pytest.approx(kwh, rel=0.01)
    assert found["statement"]["total_cents"] / 100 == pytest.approx(kwh * 0.12, rel=0.01)


@check("R111", "plan examples/chat.yaml --samples 0")
def prices_have_a_date_a_source_and_a_region(ask: Ask) -> None:
    purchase = ask.plan("chat")["plan"]["pools"][0]["purchases"][0]
    assert purchase["price_date"] >= "2025-01-01"
    assert purchase["price_source"]
    assert purchase["region"]
    europe = ask("plan examples/chat.yaml --samples 0 --cloud aws --json")
    assert europe.document["plan"]["pools"][0]["purchases"][0]["cloud"] == "aws"


@check("R112", "scale Llama-3-8B --on H100 --node-gbit 100")
def the_plan_in_terms_of_parallel_computing(ask: Ask) -> None:
    found = ask.document()
    last = found["points"][-1]
    ratio = (last["step_s"] - last["compute_s"]) / last["compute_s"]
    assert found["parallel"]["communication_to_compute"] == pytest.approx(ratio, rel=0.01)
    n, speed = last["n_accelerators"] / 8, last["speedup"]
    serial = (n / speed - 1) / (n - 1)
    assert found["parallel"]["serial_frac"] == pytest.approx(serial, rel=0.05)


@check("R113", "forecast weeks.csv --devices 48 --lead-weeks 16")
def lead_time_decides_when_to_order(ask: Ask) -> None:
    ask.write("weeks.csv", weekly_peaks(0.70, 0.08, days=56))
    late = ask.document(ask.command + " --growth 0.08")["orders"]
    soon = ask.document("forecast weeks.csv --devices 48 --lead-weeks 2 --growth 0.08")["orders"]
    assert late != soon


@check("R113", "forecast weeks.csv --devices 48 --lead-weeks 16 --lead-weeks-high 30 --growth 0.08")
def an_order_has_a_date_and_safety_stock(ask: Ask) -> None:
    ask.write("weeks.csv", weekly_peaks(0.70, 0.08, days=56))
    found = ask.document()
    order = found["orders"][0]
    assert order["order_by"] >= "2025"
    assert order["safety_stock"] > 0
    assert order["late_delivery"]["bridge_weeks"] > order["bridge_weeks"]


@check("R114", "learn chat.plan.yaml")
def five_takeaways_on_one_page(ask: Ask) -> None:
    ask.plan("chat")
    found = ask.document()
    assert [one["takeaway"] for one in found["takeaways"]] == [
        "match",
        "choose",
        "balance",
        "scale",
        "sustain",
    ]
    assert all(any(char.isdigit() for char in one["here"]) for one in found["takeaways"])

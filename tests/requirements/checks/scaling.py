"""R52 to R60: scaling."""

import pytest

from requirements.asking import Ask
from requirements.registry import check

SLOW = "scale Llama-3-8B --on H100 --node-gbit 100 --mfu 0.45"
FAST = "scale Llama-3-8B --on H100 --node-gbit 3200 --mfu 0.45"


@check("R52", SLOW + " --price 2.95")
def speed_up_bends_and_each_step_has_its_price(ask: Ask) -> None:
    found = ask.document()
    for one in found["points"]:
        speed = one["n_accelerators"] / 8 * found["points"][0]["step_s"] / one["step_s"]
        assert one["speedup"] == pytest.approx(speed, rel=0.02)
        assert one["efficiency_frac"] == pytest.approx(
            one["speedup"] / (one["n_accelerators"] / 8), rel=0.02
        )
    assert found["knee"] < 64
    fast = ask.document(FAST)
    assert fast["points"][-1]["efficiency_frac"] > 0.85


@check("R53", SLOW)
def traffic_between_nodes_explains_the_step(ask: Ask) -> None:
    """FSDP moves 3 x (n - 1) / n of 16 GB through each node's 100 Gbit/s."""
    last = ask.document()["points"][-1]
    bytes_per_node = 3 * 8.03e9 * 2 * 7 / 8
    least_s = bytes_per_node / 12.5e9
    assert last["step_s"] > least_s
    assert last["causes_s"]["data parallel"] == pytest.approx(
        last["step_s"] - last["compute_s"], rel=0.3
    )
    assert last["cause"] == "data parallel"


@check("R54", "plan examples/large-training.yaml --samples 0")
def parallelism_is_chosen_and_explained(ask: Ask) -> None:
    pool = ask.plan("large-training")["plan"]["pools"][0]
    product = pool["tp"] * pool["pp"] * pool["dp"] * pool["cp"]
    assert product == pool["n_accelerators"]
    assert pool["tp"] <= 8
    why = " ".join(ask.plan("large-training")["explanation"]["why"])
    assert f"TP{pool['tp']}" in why
    assert "MFU" in why


@check(
    "R55",
    "predict-training Llama-3.1-8B --on H100 --devices 64 --sharding fsdp"
    " --fabric '100 Gbps TCP per node'",
)
def the_kind_and_speed_of_the_network_decide(ask: Ask) -> None:
    slow = ask.document()["step_s"]["value"]
    base = "predict-training Llama-3.1-8B --on H100 --devices 64 --sharding fsdp --fabric "
    fast = ask.document(base + "'400 Gbit/s per GPU'")["step_s"]["value"]
    efa = ask.document(base + "'3200 Gbit/s EFA per node'")["step_s"]["value"]
    assert fast <= efa < slow


@check("R56", "predict Llama-3.1-8B --on A100 --precision fp4")
def what_software_cannot_run_is_refused(ask: Ask) -> None:
    answer = ask()
    assert answer.code in (2, 3)
    assert "fp4" in answer.err.lower()
    across = ask("scale Llama-3-8B --on H100 --tp 16")
    assert across.code in (2, 3)
    assert "tp-across-nodes" in across.err or "NVLink" in across.err


@check("R57", SLOW)
def the_last_useful_gpu_is_named(ask: Ask) -> None:
    found = ask.document()
    points = {one["n_accelerators"]: one for one in found["points"]}
    beyond = [n for n in points if n > found["knee"]]
    assert beyond
    gained = points[beyond[0]]["speedup"] / points[found["knee"]]["speedup"]
    assert gained < 1.5  # a doubling beyond it brings less than half of what it could
    assert found["remedies"]


@check("R57", FAST)
def no_knee_where_none_is(ask: Ask) -> None:
    found = ask.document()
    assert found["knee"] == 64 or found["knee"] is None
    assert "beyond 64" not in ask().out


@check("R58", "predict-training Llama-3.1-8B --on H100 --devices 64")
def stragglers_launches_and_input_have_their_share(ask: Ask) -> None:
    found = ask.document()
    parts = found["parts_s"]
    assert parts["stragglers"] > 0
    assert parts["host"] > 0
    assert sum(parts.values()) == pytest.approx(found["step_s"]["value"], rel=0.02)


@check("R58", SLOW + " --loader-samples-per-s 5")
def the_data_loader_is_a_part_of_scale(ask: Ask) -> None:
    points = ask.document()["points"]
    assert points[-1]["causes_s"]["input"] > 0
    assert points[-1]["step_s"] == pytest.approx(64 / 5)


@check("R59", "scale Llama-3-8B --on H100 --node-gbit 100 --price 2.95")
def the_next_dollars_are_compared(ask: Ask) -> None:
    rows = {one["what"]: one for one in ask.document()["next_spend"]}
    assert set(rows) == {"accelerators", "NICs", "storage", "code"}
    assert rows["NICs"]["speed_gain_frac"] > rows["accelerators"]["speed_gain_frac"]
    assert rows["storage"]["speed_gain_frac"] == pytest.approx(0, abs=1e-9)  # data is there
    # A loader of 5 samples/s holds 64 GPUs to 12.8 s: what feeds them brings most.
    fed = ask.document(ask.command + " --loader-samples-per-s 5")["next_spend"]
    assert fed[0]["what"] == "storage"
    free_s = ask.document()["points"][-1]["step_s"]
    assert fed[0]["speed_gain_frac"] == pytest.approx(64 / 5 / free_s - 1, rel=0.02)


@check("R59", "scale Llama-3-8B --on H100 --fabric 'carrier pigeons'")
def a_fabric_that_is_not_understood_is_refused(ask: Ask) -> None:
    assert ask().code == 2


@check("R60", SLOW + " --devices 8,64")
def a_fleet_past_its_knee_is_blocked_unless_forced(ask: Ask) -> None:
    assert ask().code == 4
    assert ask(SLOW + " --devices 8,64 --force").code == 0
    assert ask(FAST + " --devices 8,64").code == 0


HURRIED = "plan examples/scaling.yaml --samples 0 --set policy.accelerators.allowed=[H100]"
HURRIED += " --set workloads[0].training.deadline_days=0.04"


@check("R60", HURRIED)
def a_plan_past_its_knee_is_blocked_unless_forced(ask: Ask) -> None:
    """100 Gbit/s a server: four servers are hardly faster than one, whatever MFU is claimed."""
    assert ask().code == 4
    assert "past the knee" in ask().err
    assert ask(HURRIED + " --force").code == 0
    alone = ask(SLOW + " --devices 32")  # one number asks for its place on the curve, too
    assert alone.code == 4
    unhurried = ask.document("plan examples/scaling.yaml --samples 0")
    chosen = next(row for row in unhurried["comparison"] if row["is_chosen"])
    assert chosen["n_accelerators"] == 8

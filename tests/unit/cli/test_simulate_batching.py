"""Fixed batches and layouts from the command line."""

import json

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InputError

CHAT = ("--model", "Llama-3.1-8B", "--on", "H100", "--rate", 3, "--input-tokens", 300,
        "--output-tokens", 40, "--output-p95", 90, "--requests", 200)  # fmt: skip
PICTURES = ("--model", "resnet50", "--on", "L4", "--rate", 500, "--requests", 2000)


def call(*arguments: object):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments), "--json"])


def document(*arguments: object):
    found = call(*arguments)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_static_batches_of_a_language_model_wait_and_waste():
    joined = document(*CHAT)
    fixed = document(
        *CHAT, "--batching", "static", "--max-batch-size", 8, "--max-queue-delay-ms", 200
    )
    assert joined["batching"] is None
    assert fixed["batching"] == {"max_batch": 8, "max_delay_s": 0.2, "preferred_sizes": [8]}
    assert fixed["n_completed"] == 200
    assert fixed["ttft_s"]["mean"] > joined["ttft_s"]["mean"]
    assert fixed["precision"] < fixed["utilization"]["busy"]
    assert any(a["what"] == "fixed batches" for a in fixed["assumptions"])


def test_a_network_is_served_by_samples():
    batches = ("--batching", "dynamic", "--max-batch-size", 8, "--preferred-batch-size", "4,8")
    found = document(*PICTURES, *batches, "--max-queue-delay-ms", 5, "--replicas", 2)
    assert found["kind"] == "vision"
    assert found["batching"]["preferred_sizes"] == [4, 8]
    assert len(found["batch_s_by_size"]) == 9
    longest_s = found["batch_s_by_size"][-1]
    assert found["e2e_s"]["max"] <= 0.005 + 2 * longest_s
    assert found["n_iterations"] < 2000
    assert not any("lengths" in a["what"] for a in found["assumptions"])


def test_a_dynamic_batcher_without_delay_takes_what_is_there():
    found = document(*PICTURES, "--batching", "dynamic", "--max-batch-size", 8)
    assert found["batching"]["max_delay_s"] == 0.0
    waits = document(
        *PICTURES, "--batching", "dynamic", "--max-batch-size", 8, "--max-queue-delay-ms", 20
    )
    assert found["wait_s"]["mean"] < waits["wait_s"]["mean"]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ((*CHAT, "--max-batch-size", 8), "--max-batch-size"),
        ((*CHAT, "--batching", "static"), "--max-batch-size"),
        (
            (*CHAT, "--batching", "static", "--max-batch-size", 8, "--preferred-batch-size", "x"),
            "preferred",
        ),
        ((*CHAT, "--batching", "static", "--max-batch-size", 8, "--prefix-caching"), "batching"),
        ((*CHAT, "--batching", "static", "--max-batch-size", 8, "--async-scheduling"), "batching"),
        ((*CHAT, "--batching", "static", "--max-batch-size", 5000), "max batch"),
        ((*CHAT, "--batching", "static", "--max-batch-size", 8, "--itl"), "--itl"),
        ((*CHAT, "--batching", "static", "--max-batch-size", 8, "--stream"), "--stream"),
        ((*PICTURES, "--batching", "dynamic", "--max-batch-size", 8, "--stream"), "--stream"),
        ((*PICTURES, "--batching", "dynamic", "--max-batch-size", 5000), "--max-batch-size"),
    ],
    ids=[
        "unasked",
        "missing",
        "words",
        "prefixes",
        "ahead",
        "many",
        "gaps",
        "stream",
        "network",
        "sizes",
    ],
)
def test_what_does_not_go_together_is_named(arguments: tuple[object, ...], where: str):
    found = call(*arguments)
    assert isinstance(found.exception, InputError)
    assert where in str(found.exception)


def test_a_network_without_a_rule_for_batches_is_told_one():
    found = call("--model", "resnet50", "--on", "L4", "--rate", 300, "--duration", 10)
    assert isinstance(found.exception, InputError)
    assert "--batching dynamic" in str(found.exception)


def test_servers_that_are_overloaded_are_told_how_many_would_hold():
    load = (
        "--rate",
        6000,
        "--duration",
        10,
        "--batching",
        "dynamic",
        "--max-batch-size",
        16,
        "--json",
    )
    document = json.loads(call("--model", "resnet50", "--on", "L4", *load).stdout)
    assert document["verdict"] == "overloaded"
    n = document["smallest_fleet"]["replicas"]
    # A full batch of 16 takes the time that is told: so many servers carry the load, and no fewer.
    each = 16 / document["batch_s_by_size"][16]
    assert n >= 6000 / each
    assert n <= 1.3 * 6000 / each + 1


def test_a_network_of_which_only_times_are_known_is_served():
    load = (
        "--rate",
        0.1,
        "--requests",
        20,
        "--batching",
        "dynamic",
        "--max-batch-size",
        2,
        "--json",
    )
    found = call("--model", "whisper-large-v3", "--on", "A100-80GB", *load)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["n_completed"] == 20
    assert "compute and bandwidth" in {a["what"] for a in document["assumptions"]}


def test_users_who_wait_are_refused_beside_fixed_batches():
    found = call("--model", "Llama-3.1-8B", "--on", "H100", "--users", 4, "--input-tokens", 100,
                 "--output-tokens", 20, "--requests", 20, "--batching", "static",
                 "--max-batch-size", 4)  # fmt: skip
    assert isinstance(found.exception, InputError)
    assert "--users" in str(found.exception)


@pytest.mark.parametrize(
    ("flag", "what", "told"),
    [
        ("--pp", "pipeline stages", "2 batches on the way"),
        ("--dp", "layout", "2 engines a replica"),
    ],
)
def test_stages_and_attention_replicas_are_parts_of_a_replica(flag: str, what: str, told: str):
    found = document(*CHAT, flag, 2, "--tp", 2, "--replicas", 2)
    assert (found[flag.strip("-")], found["replicas"], found["n_completed"]) == (2, 2, 200)
    layout = next(a for a in found["assumptions"] if a["what"] == what)
    assert layout["value"].startswith(told)

"""llm-d and Dynamo: counts, layout and flags are the plan's; what cannot run there is refused."""

import json
from dataclasses import replace

import pytest
import yaml

from fakes.deployed import deployed, deployed_pool, node, served_model, spread_pool
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.errors import InputError
from gpuplan.render.commands.engine import image_of
from gpuplan.render.targets import rendered


def document(target, one):
    (file,) = rendered(deployed(one), target)
    return yaml.safe_load(file.content)


def test_llm_d_gets_replicas_and_parallelism_and_sets_those_flags_itself():
    found = document("llm-d", deployed_pool())
    decode = found["decode"]
    assert (decode["replicas"], decode["parallelism"]["tensor"]) == (3, 2)
    args = decode["containers"][0]["args"]
    assert "--tensor-parallel-size" not in args
    assert args[args.index("--max-num-seqs") + 1] == "256"
    assert args[args.index("--max-model-len") + 1] == "32768"
    assert found["modelArtifacts"]["name"] == "org/model"
    assert found["prefill"] == {"create": False}
    assert found["routing"]["proxy"]["enabled"] is False


def test_llm_d_leaves_the_accelerators_to_the_chart():
    resources = document("llm-d", deployed_pool())["decode"]["containers"][0]["resources"]
    assert set(resources["requests"]) == {"cpu", "memory"}


def test_llm_d_spreads_attention_over_data_parallel_ranks():
    one = spread_pool(PoolLayout(tp=1, pp=1, dp=8, ep=8))
    found = document("llm-d", one)["decode"]
    assert found["parallelism"] == {"tensor": 1, "data": 8, "dataLocal": 8}
    args = found["containers"][0]["args"]
    assert "--enable-expert-parallel" in args
    assert "--data-parallel-size" not in args


@pytest.mark.parametrize("card", ["h100-sxm", "mi300x"])
def test_llm_d_knows_the_vendor(card):
    kind = document("llm-d", deployed_pool(card))["accelerator"]["type"]
    assert kind == ("amd" if card == "mi300x" else "nvidia")


def test_dynamo_gets_workers_with_the_whole_command():
    found = document("dynamo", deployed_pool())
    front, worker = found["spec"]["components"]
    assert (front["type"], worker["type"], worker["replicas"]) == ("frontend", "worker", 3)
    (container,) = worker["podTemplate"]["spec"]["containers"]
    assert container["command"] == ["python3", "-m", "dynamo.vllm"]
    args = container["args"]
    assert args[:2] == ["--model", "org/model"]
    assert args[args.index("--tensor-parallel-size") + 1] == "2"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert "multinode" not in worker


def test_dynamo_names_the_servers_of_a_wide_replica():
    worker = document("dynamo", spread_pool(PoolLayout(tp=8, pp=2, n_servers_per_replica=2)))
    assert worker["spec"]["components"][1]["multinode"] == {"nodeCount": 2}


def test_dynamo_speaks_sglang():
    one = deployed_pool(served=served_model("sglang", "0.5.9"))
    (container,) = document("dynamo", one)["spec"]["components"][1]["podTemplate"]["spec"][
        "containers"
    ]
    assert container["command"][-1] == "dynamo.sglang"
    assert container["args"][:2] == ["--model-path", "org/model"]


def roles():
    """A disaggregated service: five replicas prefill, three decode."""
    found = []
    for role, n in (("prefill", 5), ("decode", 3)):
        one = spread_pool(PoolLayout(tp=4, pp=1, role=role, network_bytes_per_s=4e11))
        found.append(replace(one, name=f"chat-{role}", pool=replace(one.pool, n_replicas=n)))
    return found


def test_llm_d_gets_both_roles_of_a_disaggregated_service_in_one_file():
    (file,) = rendered(deployed(*roles()), "llm-d")
    found = yaml.safe_load(file.content)
    assert file.path == "llm-d-chat.yaml"
    assert (found["prefill"]["replicas"], found["decode"]["replicas"]) == (5, 3)
    assert found["routing"]["proxy"] == {"enabled": True, "connector": "nixlv2"}
    for role in ("prefill", "decode"):
        (container,) = found[role]["containers"]
        args = container["args"]
        sent = json.loads(args[args.index("--kv-transfer-config") + 1])
        assert sent == {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
        assert container["env"][0]["name"] == "VLLM_NIXL_SIDE_CHANNEL_HOST"


def test_dynamo_gets_prefill_and_decode_workers():
    (file,) = rendered(deployed(*roles()), "dynamo")
    found = yaml.safe_load(file.content)
    assert found["metadata"]["name"] == "chat"
    _, prefill, decode = found["spec"]["components"]
    assert (prefill["type"], prefill["replicas"]) == ("prefill", 5)
    assert (decode["type"], decode["replicas"]) == ("decode", 3)
    for worker in (prefill, decode):
        args = worker["podTemplate"]["spec"]["containers"][0]["args"]
        assert args[args.index("--disaggregation-mode") + 1] == worker["type"]


def test_kubernetes_opens_the_side_channel_of_each_role_and_leaves_scaling_to_the_router():
    for file in rendered(deployed(*roles()), "kubernetes"):
        documents = list(yaml.safe_load_all(file.content))
        assert "HorizontalPodAutoscaler" not in {each["kind"] for each in documents}
        (container,) = documents[0]["spec"]["template"]["spec"]["containers"]
        assert {"name": "kv-transfer", "containerPort": 5600} in container["ports"]
        assert "--kv-transfer-config" in container["command"]


def slice_of_one():
    one = deployed_pool()
    layout = PoolLayout(tp=1, pp=1, share="1g.10gb")
    return replace(one, pool=replace(one.pool, layout=layout))


@pytest.mark.parametrize(
    ("target", "one"),
    [
        ("llm-d", spread_pool(PoolLayout(tp=8, pp=2, n_servers_per_replica=2))),
        ("llm-d", deployed_pool(served=served_model("sglang", "0.5.9"))),
        ("llm-d", slice_of_one()),
        ("dynamo", deployed_pool("mi300x")),
        ("dynamo", deployed_pool(served=served_model("trtllm", "1.1.0"))),
        ("dynamo", slice_of_one()),
        ("skypilot", deployed_pool("tpu-v5e")),
        ("dstack", deployed_pool("trainium2")),
    ],
)
def test_what_cannot_run_there_is_refused(target, one):
    with pytest.raises(InputError, match="the plan has nothing for"):
        rendered(deployed(one), target)


def test_tpus_are_asked_for_as_gke_names_them_with_their_own_build():
    shape = node(n_accelerators=4)
    (file,) = rendered(deployed(deployed_pool("tpu-v5e", node=shape)), "kubernetes")
    pod = next(yaml.safe_load_all(file.content))["spec"]["template"]["spec"]
    selector = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}
    assert pod["nodeSelector"] == selector | {"cloud.google.com/gke-tpu-topology": "2x2"}
    assert pod["containers"][0]["image"] == "vllm/vllm-tpu:latest"
    assert b"name that tag of the TPU build" in b" ".join(file.content.replace(b"#", b"").split())


def test_cpus_get_the_build_for_cpus():
    one = deployed_pool("cpu-xeon-8480")
    assert image_of(one, one.served) == "vllm/vllm-openai-cpu:v0.15.0"


def test_boards_that_the_image_does_not_run_on_are_told():
    (file,) = rendered(deployed(deployed_pool("trainium2")), "kubernetes")
    assert b"does not run on AWS" in file.content


@pytest.mark.parametrize(
    ("card", "series"), [("h100-sxm", b"DCGM_FI_PROF_SM_ACTIVE"), ("mi300x", b"gpu_gfx_activity")]
)
def test_activity_is_read_from_the_vendors_exporter(card, series):
    (file,) = rendered(deployed(deployed_pool(card)), "prometheus")
    assert series in file.content
    (other,) = rendered(deployed(deployed_pool("tpu-v5e")), "prometheus")
    assert b"DCGM" not in other.content
    assert b"gpu_gfx" not in other.content

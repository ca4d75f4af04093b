"""Serving platforms on Kubernetes: values of llm-d's ModelService chart, a graph for Dynamo.

A disaggregated plan gets its prefill and its decode workers and the KV transfer between them; any
other is rendered aggregated, as it was simulated.
"""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile, ServedModel
from gpuplan.render.commands.engine import command_of, kind_of, precision_notes
from gpuplan.render.kubernetes.devices import resources_of, selector_of, tolerations_of
from gpuplan.render.kubernetes.pods import labels_of, side_channel
from gpuplan.render.reasons import head, reasons
from gpuplan.render.text import without_none, yaml_file, yaml_text

TOGETHER = "Prefill and decode run in the same replica, as the plan was simulated."
APART = "Prefill and decode run in replicas of their own; KV caches travel by NIXL, as simulated."
LLM_D_CHART = "Values of the chart llm-d-modelservice 0.4: helm install NAME CHART -f THIS."
LLM_D_KINDS = {"nvidia": "nvidia", "amd": "amd", "google": "google", "intel": "intel-xe"}
LLM_D_IMAGES = {
    "nvidia": "ghcr.io/llm-d/llm-d-cuda:latest",
    "amd": "ghcr.io/llm-d/llm-d-rocm:latest",
}
# What the chart sets itself, from `parallelism` and the ports.
LLM_D_OWN = ("--tensor-parallel-size", "--data-parallel-size", "--host", "--port")
DYNAMO_VERSION = "nvidia.com/v1beta1"
DYNAMO_ENGINES = {"vllm": "vllm", "sglang": "sglang"}
DYNAMO_IMAGE = "nvcr.io/nvidia/ai-dynamo/{}-runtime:latest"


def llm_d_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """Values for each pool that vLLM serves within a server, on accelerators that llm-d knows."""
    for one, prefill in _pairs(deployed):
        served = one.served
        is_known = one.card.vendor.lower() in LLM_D_KINDS and not one.pool.layout.share
        is_inside = one.pool.layout.n_servers_per_replica == 1 and one.pool.layout.pp == 1
        if served is None or served.engine.name != "vllm" or not (is_known and is_inside):
            continue
        name = _name(one)
        notes = [*_notes(deployed, one, prefill, served), LLM_D_CHART]
        values = yaml_text(_values(one, prefill, served), notes)
        yield yaml_file(f"llm-d-{name}.yaml", values)


def _pairs(deployed: Deployed) -> Iterator[tuple[DeployedPool, DeployedPool | None]]:
    """Every pool that answers clients, with the pool that prefills for it; None: it does both."""
    for one in deployed.pools:
        role = one.pool.layout.role
        if role != "prefill":
            yield one, deployed.beside(one, "prefill") if role else None


def _name(one: DeployedPool) -> str:
    """The name of the workload: both roles are one service."""
    role = one.pool.layout.role
    return one.name.removesuffix(f"-{role}") if role else one.name


def _notes(
    deployed: Deployed, one: DeployedPool, prefill: DeployedPool | None, served: ServedModel
) -> list[str]:
    before = reasons(prefill) if prefill else ()
    how = APART if prefill else TOGETHER
    return [*head(deployed), *before, *reasons(one), *precision_notes(one, served), how]


def _values(one: DeployedPool, prefill: DeployedPool | None, served: ServedModel) -> dict[str, Any]:
    # The sidecar beside a decode replica sends the prompt to a prefill replica first.
    proxy = {"enabled": True, "connector": "nixlv2"} if prefill else {"enabled": False}
    return {
        "modelArtifacts": {
            "name": one.model,
            "uri": f"hf://{one.model}",
            "size": resources_of(one)["requests"]["memory"],
            "authSecretName": "hf-token",
            "labels": {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": _name(one)},
        },
        "accelerator": {"type": LLM_D_KINDS[one.card.vendor.lower()]},
        "routing": {"servicePort": kind_of(served).port, "proxy": proxy},
        "decode": _llm_d_role(one, served),
        "prefill": _llm_d_role(prefill, served) if prefill else {"create": False},
    }


def _llm_d_role(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    layout = one.pool.layout
    return without_none(
        {
            "create": True,
            "replicas": one.pool.n_replicas,
            "parallelism": {"tensor": layout.tp, "data": layout.dp, "dataLocal": layout.dp},
            "nodeSelector": selector_of(one) or None,
            "tolerations": tolerations_of(one),
            "containers": [_container(one, served)],
        }
    )


def _container(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    """The engine's container; the chart asks for accelerators itself, by `parallelism`."""
    amounts = resources_of(one)
    host = {key: {k: v for k, v in each.items() if "/" not in k} for key, each in amounts.items()}
    found = {
        "name": "vllm",
        "image": LLM_D_IMAGES.get(one.card.vendor.lower(), "vllm/vllm-tpu:latest"),
        "modelCommand": "vllmServe",
        "args": _flags(one, served, LLM_D_OWN),
        "env": side_channel(one) or None,
        "resources": host,
        "mountModelVolume": True,
    }
    return without_none(found)


def _flags(one: DeployedPool, served: ServedModel, without: tuple[str, ...]) -> list[str]:
    """The engine's flags after its model, without those that the platform sets."""
    words = command_of(one.shape, served)
    flags = words[next(i for i, word in enumerate(words) if word == one.model) + 1 :]
    retained, is_left_out = [], False
    for word in flags:
        is_left_out = word in without if word.startswith("--") else is_left_out
        retained += [] if is_left_out else [word]
    return retained


def dynamo_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A DynamoGraphDeployment for each pool that vLLM or SGLang serves on NVIDIA GPUs."""
    for one, prefill in _pairs(deployed):
        served = one.served
        is_nvidia = one.card.vendor.lower() == "nvidia" and not one.pool.layout.share
        if served is None or served.engine.name not in DYNAMO_ENGINES or not is_nvidia:
            continue
        workers = [each for each in (prefill, one) if each]
        graph = yaml_text(_graph(workers, served), _notes(deployed, one, prefill, served))
        yield yaml_file(f"dynamo-{_name(one)}.yaml", graph)


def _graph(workers: list[DeployedPool], served: ServedModel) -> dict[str, Any]:
    image = DYNAMO_IMAGE.format(DYNAMO_ENGINES[served.engine.name])
    front = {"containers": [{"name": "main", "image": image}]}
    frontend = {"name": "Frontend", "type": "frontend", "replicas": 1}
    components = [{**frontend, "podTemplate": {"spec": front}}]
    components += [_dynamo_worker(each, served, image) for each in workers]
    labels = {**labels_of(workers[-1]), "app.kubernetes.io/name": _name(workers[-1])}
    return {
        "apiVersion": DYNAMO_VERSION,
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": _name(workers[-1]), "labels": labels},
        "spec": {"components": components},
    }


def _dynamo_worker(one: DeployedPool, served: ServedModel, image: str) -> dict[str, Any]:
    n_servers, role = one.pool.layout.n_servers_per_replica, one.pool.layout.role
    return without_none(
        {
            "name": f"{role.capitalize()}Worker" if role else "Worker",
            "type": role or "worker",
            "replicas": one.pool.n_replicas,
            "multinode": {"nodeCount": n_servers} if n_servers > 1 else None,
            "podTemplate": {"spec": _worker_pod(one, served, image)},
        }
    )


def _worker_pod(one: DeployedPool, served: ServedModel, image: str) -> dict[str, Any]:
    engine = DYNAMO_ENGINES[served.engine.name]
    model = ["--model" if engine == "vllm" else "--model-path", one.model]
    role = one.pool.layout.role
    model += ["--disaggregation-mode", role] if role else []
    container = {
        "name": "main",
        "image": image,
        "command": ["python3", "-m", f"dynamo.{engine}"],
        "args": [*model, *_flags(one, served, ("--host", "--enable-metrics"))],
        "envFrom": [{"secretRef": {"name": "hf-token", "optional": True}}],
        "resources": resources_of(one),
    }
    return without_none(
        {
            "nodeSelector": selector_of(one) or None,
            "tolerations": tolerations_of(one),
            "containers": [container],
        }
    )

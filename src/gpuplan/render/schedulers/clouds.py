"""Tasks for SkyPilot and dstack, variables for Terraform: machines of the plan, on its clouds."""

from collections.abc import Iterator
from typing import Any

from gpuplan.csv_rows import meanings
from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile
from gpuplan.render.commands.engine import image_of, kind_of, precision_notes, role_notes, wrapped
from gpuplan.render.commands.training import Rendezvous, n_nodes, notes_of, per_node, run_command
from gpuplan.render.reasons import head, reasons
from gpuplan.render.text import json_file, without_none, yaml_file, yaml_text

SKY = Rendezvous(rank="$SKYPILOT_NODE_RANK", address='$(echo "$SKYPILOT_NODE_IPS" | head -n 1)')
DSTACK = Rendezvous(rank="$DSTACK_NODE_RANK", address="$DSTACK_MASTER_NODE_IP")
# What SkyPilot and dstack call the boards, where it is not the board's family name.
BOARDS = meanings("render", "board_elsewhere")
FORMS = ("-sxm2", "-sxm", "-pcie", "-nvl", "-16gb", "-32gb", "-96gb", "-144gb")
SKY_CLOUDS = {"lambda": "lambda", "do": "do", "verda": "verda"}


def board(one: DeployedPool) -> str:
    """The board as those tools spell it: H100, MI300X, A100-80GB."""
    name = one.pool.accelerator
    if name in BOARDS:
        return BOARDS[name]
    for form in FORMS:
        name = name.replace(form, "")
    return name.upper().replace("RTX-", "RTX")


def has_board(one: DeployedPool) -> bool:
    """Whether those tools ask for the pool by its board: TPU and Neuron tasks are other files."""
    return one.card.is_cpu or one.card.vendor.lower() not in ("google", "aws")


def skypilot_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A task for each run, a service for each served pool."""
    for one in filter(has_board, deployed.pools):
        notes = [*head(deployed), *reasons(one)]
        if one.run is not None:
            task = _sky_task(one, run_command(one, SKY), n_nodes(one))
            yield yaml_file(f"sky-{one.name}.yaml", yaml_text(task, [*notes, *notes_of(one)]))
        elif one.served is not None:
            notes += [*precision_notes(one, one.served), *role_notes(one)]
            yield yaml_file(f"sky-{one.name}.yaml", yaml_text(_sky_service(one), notes))


def _sky_task(one: DeployedPool, run: str, nodes: int) -> dict[str, Any]:
    count = per_node(one) if one.run is not None else one.n_per_pod
    place = "/".join(part for part in (_sky_cloud(one), one.node.region) if part)
    resources = {
        "accelerators": None if one.card.is_cpu else f"{board(one)}:{count}",
        "infra": place or None,
        "instance_type": one.node.name if one.node.cloud in ("aws", "azure", "gcp") else None,
        "use_spot": True if one.node.is_spot else None,
    }
    return without_none(
        {"name": one.name, "resources": resources, "num_nodes": nodes, "run": f"{run}\n"}
    )


def _sky_cloud(one: DeployedPool) -> str:
    return SKY_CLOUDS.get(one.node.cloud, one.node.cloud)


def _sky_service(one: DeployedPool) -> dict[str, Any]:
    served = one.served
    assert served is not None
    port = kind_of(served).port
    task = _sky_task(one, wrapped(one, served), one.pool.layout.n_servers_per_replica)
    task["resources"] |= {"image_id": f"docker:{image_of(one, served)}", "ports": [port]}
    policy = {"min_replicas": one.n_replicas_least, "max_replicas": one.pool.n_replicas}
    rate = _requests_per_replica(one)
    if rate is not None and one.n_replicas_least < one.pool.n_replicas:
        policy["target_qps_per_replica"] = rate  # type: ignore[assignment]
    probe = {"path": "/health", "initial_delay_seconds": int(2 * served.startup_s) + 60}
    return {**task, "service": {"readiness_probe": probe, "replica_policy": policy}}


def _requests_per_replica(one: DeployedPool) -> float | None:
    """Load of one replica at the peak that the plan sized for."""
    serving = one.pool.n_replicas - one.pool.n_spare_replicas
    peak = None if one.load is None else one.load.peak_requests_per_s
    return None if not peak or serving < 1 else float(f"{peak / serving:.3g}")


def dstack_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A task for each run, a service for each served pool."""
    for one in filter(has_board, deployed.pools):
        if one.run is None and one.served is None:
            continue
        notes = [*head(deployed), *reasons(one)]
        body = _dstack_task(one) if one.run is not None else _dstack_service(one)
        yield yaml_file(f"{one.name}.dstack.yml", yaml_text(body, notes))


def _dstack_resources(one: DeployedPool, count: int) -> dict[str, Any]:
    gpu = {} if one.card.is_cpu else {"gpu": f"{board(one).split('-')[0]}:{count}"}
    return {**gpu, "shm_size": f"{8 * count}GB"}


def _dstack_task(one: DeployedPool) -> dict[str, Any]:
    return {
        "type": "task",
        "name": one.name,
        "nodes": n_nodes(one),
        "commands": [run_command(one, DSTACK)],
        "resources": _dstack_resources(one, per_node(one)),
        "spot_policy": "spot" if one.node.is_spot else "on-demand",
    }


def _dstack_service(one: DeployedPool) -> dict[str, Any]:
    served = one.served
    assert served is not None
    least, most = one.n_replicas_least, one.pool.n_replicas
    rate = _requests_per_replica(one)
    is_scaled = rate is not None and least < most
    return without_none(
        {
            "type": "service",
            "name": one.name,
            "image": image_of(one, served),
            "commands": [wrapped(one, served)],
            "port": kind_of(served).port,
            "model": one.model,
            "replicas": f"{least}..{most}" if is_scaled else most,
            "scaling": {"metric": "rps", "target": max(1, round(rate or 1))} if is_scaled else None,
            "resources": _dstack_resources(one, one.n_per_pod),
            "spot_policy": "spot" if one.node.is_spot else "on-demand",
        }
    )


def terraform_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """Variables: the node groups of the plan, for whatever module makes them."""
    groups = {
        one.name: {
            "cloud": one.node.cloud or "own",
            "region": one.node.region,
            "instance_type": one.node.name,
            "node_count": one.node.n_nodes,
            "accelerator": one.pool.accelerator,
            "accelerators_per_node": one.node.n_accelerators,
            "spot": one.node.is_spot,
            "labels": {"gpuplan/pool": one.name},
        }
        for one in deployed.pools
        if one.node.n_nodes
    }
    document = {"gpuplan_origin": deployed.origin, "gpuplan_node_groups": groups}
    yield json_file("gpuplan.auto.tfvars.json", document)
    variables = {
        "gpuplan_origin": {"type": "string"},
        "gpuplan_node_groups": {"type": TERRAFORM_TYPE},
    }
    yield json_file("gpuplan-variables.tf.json", {"variable": variables})


TERRAFORM_TYPE = (
    "map(object({cloud = string, region = string, instance_type = string, node_count = number, "
    "accelerator = string, accelerators_per_node = number, spot = bool, labels = map(string)}))"
)

"""What Kubernetes calls the accelerators of a pool, and the nodes that carry them."""

from collections.abc import Iterator
from typing import Any

from gpuplan.csv_rows import meanings
from gpuplan.domain.plan.deployed import DeployedPool
from gpuplan.units import GB, GIB

# Resource names of the vendors' device plugins.
RESOURCES = meanings("render", "device_resource")
# Clouds whose nodes carry the machine's name as a label.
NAMED_NODES = ("aws", "azure", "gcp", "oci")
INSTANCE = "node.kubernetes.io/instance-type"
# What GPU feature discovery writes for boards, by the id of the catalog.
PRODUCTS = meanings("render", "gpu_product")
# What GKE writes for TPU nodes, by the id of the catalog; their machine types are its own.
TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
TPUS = meanings("render", "tpu_accelerator")
FLAT = {1: "1x1", 4: "2x2", 8: "2x4"}  # chips of one node of v5e and v6e
CUBE = {4: "2x2x1"}  # of the others
GKE_SHARING = "cloud.google.com/gke-gpu-sharing-strategy"
GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
GKE_SLICE = "cloud.google.com/gke-gpu-partition-size"
MIG_SLICES = 7  # compute slices of a MIG-capable accelerator [NVIDIA-MIG]
NODE_FRAC = 0.9  # of a node's CPUs and memory: the rest is for the system and its agents
SHM_BYTES = 8 * GIB  # shared memory of each accelerator's worker processes


def resource_of(one: DeployedPool) -> str:
    """The extended resource that a pod of the pool asks for."""
    share = one.pool.layout.share
    maker = "gaudi" if "gaudi" in one.card.id else one.card.vendor.lower()
    vendor = RESOURCES.get(maker, "nvidia.com/gpu")
    if not share or one.node.cloud == "gcp":
        return vendor  # GKE tells slices and turns by labels of the node
    return f"nvidia.com/mig-{share}" if is_mig(one) else f"{vendor}.shared"


def is_mig(one: DeployedPool) -> bool:
    """Whether a replica takes a MIG slice, such as 1g.10gb."""
    return "g." in one.pool.layout.share


def n_slices(one: DeployedPool) -> int:
    """Replicas that share one accelerator: of MIG, as compute slices and memory allow."""
    share = one.pool.layout.share
    if not is_mig(one):
        return int(share.partition("/")[2] or 1)
    slices, _, size = share.partition("g.")
    resident = one.card.memory.marketed_bytes // (float(size.removesuffix("gb")) * GB)
    return max(1, min(MIG_SLICES // int(slices), int(resident)))


def share_notes(one: DeployedPool) -> Iterator[str]:
    """How nodes have to be set up for accelerators that replicas share."""
    share = one.pool.layout.share
    if not share:
        return
    if one.node.cloud == "gcp":
        how = f"gpu-partition-size={share}" if is_mig(one) else "gpu-sharing-strategy=time-sharing"
        yield f"GKE shares the nodes' accelerators: create their pool with {how}."
    elif not is_mig(one):
        yield (
            f"{n_slices(one)} replicas take turns on one accelerator: the device plugin needs "
            f"sharing.timeSlicing with replicas: {n_slices(one)} and renameByDefault: true. Turns "
            "do not isolate memory: what one replica takes, the others lack."
        )
    else:
        yield (
            f"MIG: {n_slices(one)} slices of {share} on one accelerator. With NVIDIA's GPU "
            "operator set mig.strategy=mixed and label the nodes "
            f"nvidia.com/mig.config=all-{share}; the device plugin then offers {resource_of(one)}."
        )


def resources_of(one: DeployedPool) -> dict[str, Any]:
    """Requests and limits of one pod: its accelerators, and its part of the node."""
    n = one.n_per_pod
    amount = {} if one.card.is_cpu else {resource_of(one): str(n)}
    taken = n / n_slices(one)  # of the node's accelerators
    part = taken / one.node.n_accelerators if one.node.n_accelerators else 0.0
    share = NODE_FRAC * min(1.0, part)
    cpus = one.node.n_vcpu * share if one.node.n_vcpu else 8.0 * taken
    ram = one.node.ram_bytes * share if one.node.ram_bytes else 2 * taken * _memory(one)
    host = {"cpu": str(max(1, int(cpus))), "memory": f"{max(1, int(ram / GIB))}Gi"}
    return {"requests": {**host, **amount}, "limits": {"memory": host["memory"], **amount}}


def _memory(one: DeployedPool) -> float:
    return one.card.memory.marketed_bytes


def selector_of(one: DeployedPool) -> dict[str, str]:
    """Labels of the nodes that the plan counts on."""
    if one.pool.accelerator in TPUS:
        shapes = FLAT if one.pool.accelerator.endswith("e") else CUBE
        shape = shapes.get(one.node.n_accelerators)
        topology = {TPU_TOPOLOGY: shape} if shape else {}
        return {TPU_LABEL: TPUS[one.pool.accelerator], **topology}
    if one.node.cloud in NAMED_NODES:
        return {INSTANCE: one.node.name, **_gke_share(one)}
    product = PRODUCTS.get(one.pool.accelerator)
    return {"nvidia.com/gpu.product": product} if product else {}


def _gke_share(one: DeployedPool) -> dict[str, str]:
    """Labels of GKE's nodes whose accelerators are cut or shared."""
    share = one.pool.layout.share
    if not share or one.node.cloud != "gcp":
        return {}
    if is_mig(one):
        return {GKE_SLICE: share}
    return {GKE_SHARING: "time-sharing", GKE_CLIENTS: str(n_slices(one))}


def tolerations_of(one: DeployedPool) -> list[dict[str, str]]:
    """Nodes with accelerators are usually kept free of other pods."""
    if one.card.is_cpu:
        return []
    key = "nvidia.com/gpu" if "nvidia" in resource_of(one) else resource_of(one)
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]

"""What a host needs for its accelerators, in: work and machine; out: each part with its reason."""

from math import ceil

from gpuplan.domain.design import HostLine
from gpuplan.domain.findings import Finding
from gpuplan.units import GB, GBIT, GIB, TB

# Cores: one for each accelerator's process and one for what it hands over, four for the system.
# Assumption; serving engines ask for as much.
CORES_PER_ACCELERATOR = 2.0
SYSTEM_CORES = 4.0
# Memory: twice the accelerators', for loading, caches of files and what is moved out of them
# [dgx-superpod-h100-ra: 2 TB beside 640 GB]. Assumption.
MEMORY_RATIO = 2.0
LOAD_S = 60.0  # that loading weights may take of a start. Assumption.
PREFETCH_BATCHES = 4.0  # of each accelerator, in pinned memory
# Kept by Kubernetes of the first, second, next two and further cores, as large clouds do
# [gke-allocatable]; and half a core for agents on each node.
KUBE_CORE_FRACS = ((1, 0.06), (1, 0.01), (2, 0.005))
KUBE_FURTHER_FRAC = 0.0025
AGENT_CORES = 0.5
# Allocatable over advertised memory: 1,891 of 2,048 GiB on a p5.48xlarge [pytorch-ci-529].
KUBE_MEMORY_FRAC = 1891.0 / 2048.0


def allocatable_cores(n_cores: float) -> float:
    """Cores that pods can ask for, of those that are advertised."""
    kept, left = AGENT_CORES, n_cores
    for n, share in KUBE_CORE_FRACS:
        kept += share * min(left, n)
        left = max(0.0, left - n)
    return max(0.0, n_cores - kept - KUBE_FURTHER_FRAC * left)


def allocatable_bytes(ram_bytes: float) -> float:
    """Memory that pods can ask for, of what is advertised."""
    return KUBE_MEMORY_FRAC * ram_bytes


def cores_line(
    n_accelerators: int, decode_cores: float, n_given: float | None, *, is_advertised: bool
) -> HostLine:
    """Cores of one node. What is advertised counts as allocatable only."""
    needed = n_accelerators * CORES_PER_ACCELERATOR + SYSTEM_CORES + decode_cores
    reason = f"{CORES_PER_ACCELERATOR:g} for each accelerator, {SYSTEM_CORES:g} for the system"
    if decode_cores:
        reason += f", {decode_cores:.0f} to decode"
    if n_given is not None and is_advertised:
        n_given = allocatable_cores(n_given)
    return HostLine(part="CPU", unit="cores", n_needed=ceil(needed), n_given=n_given, reason=reason)


def memory_line(
    accelerator_bytes: float, n_accelerators: int, *, pinned_bytes: float, given_bytes: float | None
) -> HostLine:
    """Memory of one node in GiB; what is given is advertised, what counts is allocatable."""
    needed = MEMORY_RATIO * accelerator_bytes * n_accelerators + pinned_bytes
    reason = f"{MEMORY_RATIO:g} times the accelerators' memory"
    if pinned_bytes:
        reason += f", {pinned_bytes / GIB:.1f} GiB pinned for batches"
    given = None if given_bytes is None else allocatable_bytes(given_bytes) / GIB
    return HostLine(part="memory", unit="GiB", n_needed=needed / GIB, n_given=given, reason=reason)


def pinned_bytes(batch_bytes: float, n_accelerators: int) -> float:
    """Page-locked memory for batches that wait to be copied."""
    return PREFETCH_BATCHES * batch_bytes * n_accelerators


def nvme_line(
    dataset_bytes: float, state_bytes: float, *, n_nodes: int, given_bytes: float | None
) -> HostLine:
    """Local drives of one node: its share of the dataset and two checkpoints' shares."""
    needed = (dataset_bytes + 2.0 * state_bytes) / n_nodes
    reason = "share of the dataset" if dataset_bytes else "scratch"
    if state_bytes:
        reason += ", two checkpoints until they are copied away"
    given = None if given_bytes is None else given_bytes / TB
    return HostLine(
        part="local NVMe", unit="TB", n_needed=needed / TB, n_given=given, reason=reason
    )


def nic_line(wanted_bytes_per_s: float, given_bytes_per_s: float | None, reason: str) -> HostLine:
    """What leaves a node towards other nodes."""
    given = None if given_bytes_per_s is None else given_bytes_per_s / GBIT
    return HostLine(
        part="adapters", unit="Gbit/s", n_needed=wanted_bytes_per_s / GBIT, n_given=given,
        reason=reason,
    )  # fmt: skip


def load_line(weight_bytes: float, given_bytes_per_s: float | None) -> HostLine:
    """Storage that brings weights to a node fast enough for a scale-out to be of use."""
    given = None if given_bytes_per_s is None else given_bytes_per_s / GB
    return HostLine(
        part="model load", unit="GB/s", n_needed=weight_bytes / LOAD_S / GB, n_given=given,
        reason=f"{weight_bytes / GB:,.0f} GB of weights within {LOAD_S:.0f} s of a start",
    )  # fmt: skip


def host_findings(lines: tuple[HostLine, ...], node: str) -> tuple[Finding, ...]:
    """A warning for each part that is known to be too little."""
    return tuple(
        Finding(
            severity="warning",
            rule=f"host-{line.part.split()[-1].lower()}",
            where=node,
            what=f"{line.part}: {line.n_given:,.1f} of {line.n_needed:,.1f} {line.unit} usable",
            fix=f"{line.n_needed:,.0f} {line.unit}: {line.reason}",
        )
        for line in lines
        if line.is_short
    )

"""What a host needs for its accelerators, in: work and machine; out: each part with its reason."""

from collections.abc import Collection
from math import ceil

from gpuplan.domain.scenario.build import HostRules
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import HostLine
from gpuplan.units import GB, GBIT, GIB, TB

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
    n_accelerators: int,
    decode_cores: float,
    n_given: float | None,
    *,
    is_advertised: bool,
    rules: HostRules | None = None,
) -> HostLine:
    """Cores of one node. What is advertised counts as allocatable only."""
    known = rules or HostRules()
    each, system = known.n_cores_per_accelerator, known.n_system_cores
    needed = n_accelerators * each + system + decode_cores
    reason = f"{each:g} for each accelerator, {system:g} for the system"
    if decode_cores:
        reason += f", {decode_cores:.0f} to decode"
    if n_given is not None and is_advertised:
        n_given = allocatable_cores(n_given)
    return HostLine(part="CPU", unit="cores", n_needed=ceil(needed), n_given=n_given, reason=reason)


def memory_line(
    accelerator_bytes: float,
    n_accelerators: int,
    *,
    pinned_bytes: float,
    given_bytes: float | None,
    rules: HostRules | None = None,
) -> HostLine:
    """Memory of one node in GiB; what is given is advertised, what counts is allocatable."""
    ratio = (rules or HostRules()).memory_ratio
    needed = ratio * accelerator_bytes * n_accelerators + pinned_bytes
    reason = f"{ratio:g} times the accelerators' memory"
    if pinned_bytes:
        reason += f", {pinned_bytes / GIB:.1f} GiB pinned for batches"
    given = None if given_bytes is None else allocatable_bytes(given_bytes) / GIB
    return HostLine(part="memory", unit="GiB", n_needed=needed / GIB, n_given=given, reason=reason)


def pinned_bytes(
    batch_bytes: float, n_accelerators: int, *, rules: HostRules | None = None
) -> float:
    """Page-locked memory for batches that wait to be copied."""
    return (rules or HostRules()).n_prefetch_batches * batch_bytes * n_accelerators


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
        part="adapters",
        unit="Gbit/s",
        n_needed=wanted_bytes_per_s / GBIT,
        n_given=given,
        reason=reason,
    )


def load_line(
    weight_bytes: float, given_bytes_per_s: float | None, *, rules: HostRules | None = None
) -> HostLine:
    """Storage that brings weights to a node fast enough for a scale-out to be of use."""
    given = None if given_bytes_per_s is None else given_bytes_per_s / GB
    load_s = (rules or HostRules()).load_s
    return HostLine(
        part="model load",
        unit="GB/s",
        n_needed=weight_bytes / load_s / GB,
        n_given=given,
        reason=f"{weight_bytes / GB:,.0f} GB of weights within {load_s:.0f} s of a start",
    )


def host_findings(
    lines: tuple[HostLine, ...], node: str, *, shipped: Collection[str] = ()
) -> tuple[Finding, ...]:
    """A warning for each part that is known to be too little; of what makers ship so, a note."""
    return tuple(
        Finding(
            severity="note" if line.part in shipped else "warning",
            rule=f"host-{line.part.split()[-1].lower()}",
            where=node,
            what=f"{line.part}: {line.n_given:,.1f} of {line.n_needed:,.1f} {line.unit} usable",
            fix=f"{line.n_needed:,.0f} {line.unit}: {line.reason}",
        )
        for line in lines
        if line.is_short
    )

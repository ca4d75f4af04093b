"""Hosts: what one server needs beside its accelerators, against what it has."""

from collections.abc import Collection
from dataclasses import replace
from math import ceil

from gpuplan.domain.scenario.build import USUAL, HostRules
from gpuplan.domain.system.findings import Finding, note, warning
from gpuplan.domain.system.parts import HostLine
from gpuplan.units import GB, GBIT, GIB, TB

# Reserved by Kubernetes of the first, second, next two and further cores, as large clouds do
# [gke-allocatable]; and half a core for agents on each node.
KUBE_CORE_FRACS = ((1, 0.06), (1, 0.01), (2, 0.005))
KUBE_FURTHER_FRAC = 0.0025
AGENT_CORES = 0.5
# Allocatable over advertised memory: 1,891 of 2,048 GiB on a p5.48xlarge [pytorch-ci-529].
KUBE_MEMORY_FRAC = 1891.0 / 2048.0


def allocatable_cores(n_cores: float) -> float:
    """The cores that pods can request, of those that are advertised."""
    reserved, left = AGENT_CORES, n_cores
    for n, share in KUBE_CORE_FRACS:
        reserved += share * min(left, n)
        left = max(0.0, left - n)
    return max(0.0, n_cores - reserved - KUBE_FURTHER_FRAC * left)


def allocatable_bytes(ram_bytes: float) -> float:
    """The memory that pods can request, of what is advertised."""
    return KUBE_MEMORY_FRAC * ram_bytes


def cores_line(
    n_accelerators: int,
    decode_cores: float,
    n_given: float | None,
    *,
    is_advertised: bool,
    rules: HostRules = USUAL.hosts,
) -> HostLine:
    """CPU cores of one node; of advertised cores only the allocatable ones count."""
    each, system = rules.n_cores_per_accelerator, rules.n_system_cores
    needed = n_accelerators * each + system + decode_cores
    reason = f"{each:g} for each accelerator, {system:g} for the system"
    if decode_cores:
        reason += f", {decode_cores:.0f} to decode"
    if n_given is not None and is_advertised:
        n_given = allocatable_cores(n_given)
    return _line("CPU", "cores", ceil(needed), n_given, reason)


def memory_line(
    accelerator_bytes: float,
    n_accelerators: int,
    *,
    batch_bytes: float,
    given_bytes: float | None,
    rules: HostRules = USUAL.hosts,
) -> HostLine:
    """Memory of one node with pinned batches; of advertised memory the allocatable part counts."""
    ratio = rules.memory_ratio
    pinned_bytes = rules.n_prefetch_batches * batch_bytes * n_accelerators
    needed = ratio * accelerator_bytes * n_accelerators + pinned_bytes
    reason = f"{ratio:g} times the accelerators' memory"
    if pinned_bytes:
        reason += f", {pinned_bytes / GIB:.1f} GiB pinned for batches"
    given = None if given_bytes is None else allocatable_bytes(given_bytes)
    line = _line("memory", "GiB", needed, given, reason, scale=GIB)
    return replace(line, n_firm=pinned_bytes / GIB)


def nvme_line(dataset_bytes: float, *, n_nodes: int, given_bytes: float | None) -> HostLine:
    """Local drives of one node: its share of the dataset."""
    reason = "share of the dataset" if dataset_bytes else "scratch"
    return _line("local NVMe", "TB", dataset_bytes / n_nodes, given_bytes, reason, scale=TB)


def nic_line(wanted_bytes_per_s: float, given_bytes_per_s: float | None, reason: str) -> HostLine:
    """Network bandwidth from one node to the other nodes."""
    return _line("NICs", "Gbit/s", wanted_bytes_per_s, given_bytes_per_s, reason, scale=GBIT)


def load_line(
    weight_bytes: float, given_bytes_per_s: float | None, *, rules: HostRules = USUAL.hosts
) -> HostLine:
    """Storage bandwidth that loads the weights of a new replica in time."""
    wanted = weight_bytes / rules.load_s
    reason = f"{weight_bytes / GB:,.0f} GB of weights within {rules.load_s:.0f} s of a start"
    return _line("model load", "GB/s", wanted, given_bytes_per_s, reason, scale=GB)


def _line(
    part: str, unit: str, needed: float, given: float | None, reason: str, *, scale: float = 1.0
) -> HostLine:
    n_given = None if given is None else given / scale
    return HostLine(part=part, unit=unit, n_needed=needed / scale, n_given=n_given, reason=reason)


def host_findings(
    lines: tuple[HostLine, ...], node: str, *, shipped: Collection[str] = ()
) -> tuple[Finding, ...]:
    """A warning for each part known to be insufficient; a note where makers ship it so."""
    return tuple(
        (note if line.part in shipped else warning)(
            f"host-{line.part.split()[-1].lower()}",
            node,
            f"{line.part}: {line.n_given:,.1f} of {line.n_needed:,.1f} {line.unit} usable",
            f"{line.n_needed:,.0f} {line.unit}: {line.reason}",
        )
        for line in lines
        if line.is_short
    )

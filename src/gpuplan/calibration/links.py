"""Link models: an accelerator or a NIC in, its LinkModel with calibrated constants out.

Rates come from the catalog; fixed costs and reached shares are fitted per link class and stand in
`data/links.json`. A class without measurements inherits those of the nearest one.
"""

from collections.abc import Mapping
from typing import Any

from gpuplan.calibration.tables import read_constants
from gpuplan.domain.hardware.devices import Accelerator, HostLink, ScaleUpLink
from gpuplan.domain.hardware.links import DirectKernel, LinkModel, Protocol, SwitchReduction
from gpuplan.errors import InputError, one
from gpuplan.units import GB

# Assumption: an accelerator whose sheet names no link at all sits on PCIe 4.0 x16.
ASSUMED_HOST_LINK = HostLink(name="assumed PCIe 4.0 x16", bytes_per_s=31.5 * GB)
FABRICS = ("infiniband", "roce", "efa", "tcp")


def link_of(accelerator: Accelerator, *, n_ranks: int = 2, engine: str = "") -> LinkModel:
    """What joins a group of these accelerators in one server: the NVLink domain's if it holds all.

    A group larger than the domain (a bridge joins two) runs at the pace of the host's bus.
    """
    domain = accelerator.scale_up
    if domain is not None and n_ranks <= domain.n_domain_max:
        return _scale_up(domain, engine)
    return host_bus_of(accelerator, engine=engine)


def host_bus_of(accelerator: Accelerator, *, engine: str = "") -> LinkModel:
    """Ranks joined by the host's bus alone. GeForce boards have no peer-to-peer over it."""
    host = accelerator.host_link or ASSUMED_HOST_LINK
    name = "pcie-host" if "GeForce" in accelerator.name else "pcie"
    return _model(name, host.bytes_per_s, pair_bytes_per_s=None, engine=engine)


def fabric_link(bytes_per_s: float, *, fabric: str = "infiniband") -> LinkModel:
    """What one rank has towards other nodes: its share of the node's NICs, or all of them."""
    if fabric not in FABRICS:
        raise one(InputError, "fabric_link", "fabric", f"got {fabric!r}", f"use one of {FABRICS}")
    if bytes_per_s <= 0:
        raise one(InputError, "fabric_link", "rate", f"got {bytes_per_s}", "use a positive number")
    return _model(fabric, bytes_per_s, pair_bytes_per_s=None, engine="")


def link_class_of(domain: ScaleUpLink) -> str:
    """Name of the class whose constants hold for this link."""
    name = domain.name.lower()
    if "bridge" in name and "nvlink" in name:
        return "nvlink-bridge"
    if name.startswith("nvlink"):
        generation = f"nvlink{name.split()[1]}"
        return generation if generation in link_classes() else "other"
    return "infinity-fabric" if "infinity" in name else "other"


def link_classes() -> tuple[str, ...]:
    """The names of all link classes that have constants."""
    return tuple(_stored()["classes"])


def _scale_up(domain: ScaleUpLink, engine: str) -> LinkModel:
    name = link_class_of(domain)
    pair = domain.pair_bytes_per_s
    # A switch gives one pair the whole rate: no mesh to account for.
    mesh = pair if pair is not None and pair < domain.bytes_per_s else None
    return _model(name, domain.bytes_per_s, pair_bytes_per_s=mesh, engine=engine)


def _model(name: str, rate: float, *, pair_bytes_per_s: float | None, engine: str) -> LinkModel:
    stored = _stored()
    found: Mapping[str, Any] = stored["classes"][name]
    launch_frac = stored["direct_launch_frac"].get(engine, 1.0)
    return LinkModel(
        name=name,
        bytes_per_s=rate,
        pair_bytes_per_s=pair_bytes_per_s,
        contended_frac=found["crowd_frac"],
        has_tree=found.get("has_tree", False),
        ring=Protocol(**found["ring"]),
        pairwise=Protocol(**found["pairwise"]),
        switch=SwitchReduction(**found["switch"]) if found["switch"] else None,
        direct=_direct(found["direct"], launch_frac) if found["direct"] else None,
    )


def _direct(found: Mapping[str, Any], launch_frac: float) -> DirectKernel:
    return DirectKernel(**{**found, "launch_s": found["launch_s"] * launch_frac})


def _stored() -> Mapping[str, Any]:
    return read_constants("links.json")

"""What can be bought or rented, as the catalog knows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

AcceleratorId = NewType("AcceleratorId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory of one accelerator: as marketed, as the driver counts it, as a program sees it."""

    kind: str
    marketed_bytes: float
    driver_bytes: float  # total that the vendor's tool prints, after error correction's share
    visible_bytes: float  # total that a framework can address: what fits is decided by this
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpLink:
    """Fast link between accelerators of one island."""

    name: str
    bytes_per_s: float  # one direction, all links of one accelerator
    pair_bytes_per_s: float | None  # one direction, between two neighbours
    n_domain: int  # accelerators that share it
    n_domain_max: int  # in the largest published arrangement


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink:
    """The way to the host's memory."""

    name: str
    bytes_per_s: float  # one direction, after line coding


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerDraw:
    """Board power; unknown is None, never zero."""

    limit_w: float | None  # thermal design power or the default limit
    idle_w: float | None
    loaded_idle_w: float | None  # with a model in memory and nothing to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as software counts it; peaks are dense, without sparsity."""

    id: AcceleratorId
    name: str
    vendor: str
    family: str  # architecture, e.g. Hopper
    form_factor: str
    instruction_set: str  # sm_90, gfx942, x86-64-v4 …
    peak_flop_per_s: Mapping[str, float]  # by precision; absent = the hardware cannot
    memory: DeviceMemory
    scale_up: ScaleUpLink | None
    host_link: HostLink | None
    power: PowerDraw
    launched: str  # ISO month

    @property
    def is_cpu(self) -> bool:
        """A host processor, not an accelerator card."""
        return self.form_factor == "socket"

"""The catalog as the rooms see it: nouns by name, and the fact that each number rests on."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from gpuplan.domain.hardware.devices import (
    Accelerator,
    AcceleratorId,
    Link,
    MigProfile,
    Nic,
    PartId,
    Server,
    ServerId,
    StorageClass,
    Switch,
)
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Override, Source
from gpuplan.domain.ranges import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One figure from one source. Of several for one quantity, one is preferred."""

    item: str
    quantity: str
    value: str  # as the source prints it, in `unit`
    unit: str
    source: str
    preferred: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What carries bytes between machines."""

    switches: Mapping[PartId, Switch]
    nics: Mapping[PartId, Nic]
    links: Mapping[PartId, Link]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Hardware that can be planned with."""

    accelerators: Mapping[AcceleratorId, Accelerator]
    servers: Mapping[ServerId, Server]
    network: Network
    storage: Mapping[PartId, StorageClass]
    mig_profiles: tuple[MigProfile, ...]
    facts: Mapping[str, tuple[Fact, ...]]  # by item
    sources: Mapping[str, Source]
    content_hash: str
    overrides: tuple[Override, ...] = ()

    def facts_of(self, item: str) -> tuple[Fact, ...]:
        """Every fact about the item, preferred or not."""
        return self.facts.get(item, ())

    def fact(self, item: str, quantity: str) -> Fact | None:
        """The preferred fact, or None where nothing is published."""
        for fact in self.facts_of(item):
            if fact.quantity == quantity and fact.preferred:
                return fact
        return None

    def on_sale(self, named: Collection[str] = ()) -> "Catalog":
        """Without accelerators that are only announced, except those asked for by name."""
        retained = {
            key: card
            for key, card in self.accelerators.items()
            if not card.is_announced or key in named
        }
        return replace(self, accelerators=retained)

    def street_price(self, item: str) -> "StreetPrice | None":
        """What a board or server is sold for, lowest to highest; None where nobody says."""
        low, high = self.fact(item, "price_low"), self.fact(item, "price_high")
        if low is None or high is None:
            return None
        least, most = float(low.value), float(high.value)
        usd = Range(low=least, mid=(least + most) / 2, high=most)
        return StreetPrice(usd=usd, source=low.source, is_server=item in self.servers)

    def node_price(self, accelerator: str, n: int) -> "StreetPrice | None":
        """What the cheapest server with n of them is sold for, else one of them."""
        servers = (
            self.street_price(str(server.id))
            for server in self.servers.values()
            if server.accelerator == accelerator and server.n_accelerators == n
        )
        priced = [price for price in servers if price is not None]
        return min(priced, key=lambda p: p.usd.mid, default=self.street_price(accelerator))

    def mig_profiles_of(self, accelerator: AcceleratorId) -> tuple[MigProfile, ...]:
        """The ways to cut this accelerator; empty where it cannot be cut."""
        return tuple(p for p in self.mig_profiles if p.accelerator == accelerator)


class StreetPrice(NamedTuple):
    """What something is sold for, and who reports it; no maker publishes a list."""

    usd: Range
    source: str
    is_server: bool = False  # else one accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorChoice:
    """What a name that a person typed stands for."""

    accelerator: Accelerator
    n_accelerators: int  # 1 where the text names no count
    assumptions: tuple[Assumption, ...] = ()

"""Preferred facts, in: rows about one item; out: the noun they describe, in base units."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpuplan.catalog.schema import PRECISIONS, QUANTITIES, Kind, in_base_units
from gpuplan.domain.hardware.catalog import Fact
from gpuplan.domain.hardware.devices import (
    ANNOUNCED,
    Accelerator,
    AcceleratorId,
    DeviceMemory,
    HostLink,
    HostParts,
    Lifecycle,
    Link,
    Nic,
    PartId,
    PowerDraw,
    ScaleUpLink,
    Server,
    ServerId,
    ServerPower,
    StorageClass,
    Switch,
)
from gpuplan.errors import Problem


class Sheet:
    """The preferred facts of one item, read in base units."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts = {fact.quantity: fact for fact in facts if fact.preferred}

    def number(self, quantity: str) -> float:
        """The value; the item is complete, so it is there."""
        fact = self._facts[quantity]
        return in_base_units(fact.value, fact.unit)

    def maybe(self, quantity: str) -> float | None:
        """The value, or None where nothing is published."""
        return self.number(quantity) if quantity in self._facts else None

    def count(self, quantity: str) -> int:
        """The number of things."""
        return int(self.number(quantity))

    def maybe_count(self, quantity: str) -> int | None:
        """The number of things, or None where nothing is published."""
        return self.count(quantity) if quantity in self._facts else None

    def text(self, quantity: str) -> str:
        """The word, empty where there is none."""
        fact = self._facts.get(quantity)
        return fact.value if fact else ""

    def has(self, quantity: str) -> bool:
        """Something is published."""
        return quantity in self._facts


def missing(item: str, facts: Iterable[Fact], *, kind: Kind) -> list[Problem]:
    """What the item still needs before it can be planned with."""
    known = {fact.quantity for fact in facts if fact.preferred}
    wanted = [q for q in QUANTITIES[kind].values() if q.required and q.name not in known]
    problems = [
        Problem(f"{item}.{q.name}", "missing", f"add a preferred fact in {q.unit}") for q in wanted
    ]
    if kind == "accelerator" and not any(f"peak_{name}" in known for name in PRECISIONS):
        problems.append(
            Problem(f"{item}.peak_*", "missing", "add the dense peak of one precision in TFLOP/s")
        )
    return problems


def accelerator(item: str, facts: Iterable[Fact]) -> Accelerator:
    """The accelerator that the facts describe."""
    sheet = Sheet(facts)
    peaks = {name: sheet.number(f"peak_{name}") for name in PRECISIONS if sheet.has(f"peak_{name}")}
    return Accelerator(
        id=AcceleratorId(item),
        name=sheet.text("name"),
        vendor=sheet.text("vendor"),
        family=sheet.text("family"),
        form_factor=sheet.text("form_factor"),
        instruction_set=sheet.text("instruction_set"),
        peak_flop_per_s=MappingProxyType(peaks),
        memory=DeviceMemory(
            kind=sheet.text("memory_kind"),
            marketed_bytes=sheet.number("memory_marketed"),
            driver_bytes=sheet.number("memory_driver"),
            visible_bytes=sheet.number("memory_visible"),
            bytes_per_s=sheet.number("memory_bandwidth"),
        ),
        scale_up=_scale_up(sheet),
        host_link=_host_link(sheet),
        power=PowerDraw(
            limit_w=sheet.maybe("power_limit"),
            idle_w=sheet.maybe("power_idle"),
            loaded_idle_w=sheet.maybe("power_loaded_idle"),
        ),
        lifecycle=_lifecycle(sheet),
    )


def _lifecycle(sheet: Sheet) -> Lifecycle:
    """As stated; what only has a launch is on sale."""
    launched, stated = sheet.text("launched"), sheet.text("status")
    status = ANNOUNCED if launched == ANNOUNCED else stated or "on sale"
    return Lifecycle(launched=launched, status=status)


def server(item: str, facts: Iterable[Fact]) -> Server:
    """The server that the facts describe."""
    sheet = Sheet(facts)
    return Server(
        id=ServerId(item),
        name=sheet.text("name"),
        accelerator=AcceleratorId(sheet.text("accelerator")),
        n_accelerators=sheet.count("n_accelerators"),
        host=HostParts(
            cpu=sheet.text("cpu"),
            n_cores=sheet.maybe_count("n_cores"),
            ram_bytes=sheet.maybe("ram"),
            fabric_nic=sheet.text("fabric_nic"),
            n_fabric_nics=sheet.maybe_count("n_fabric_nics"),
            front_nic=sheet.text("front_nic"),
            n_front_nics=sheet.maybe_count("n_front_nics"),
            nvme_bytes=sheet.maybe("nvme"),
        ),
        power=ServerPower(
            limit_w=sheet.maybe("power_limit"),
            measured_peak_w=sheet.maybe("power_measured_peak"),
            measured_idle_w=sheet.maybe("power_measured_idle"),
            psu=sheet.text("psu"),
            cooling=sheet.text("cooling"),
        ),
        height_u=sheet.maybe("rack_units"),
        weight_kg=sheet.maybe("weight"),
        depth_m=sheet.maybe("depth"),
    )


def switch(item: str, facts: Iterable[Fact]) -> Switch:
    """The switch that the facts describe."""
    sheet = Sheet(facts)
    return Switch(
        id=PartId(item),
        name=sheet.text("name"),
        fabric=sheet.text("fabric"),
        n_ports=sheet.count("n_ports"),
        port_bytes_per_s=sheet.number("port_bandwidth"),
        height_u=sheet.maybe("rack_units"),
        typical_w=sheet.maybe("power_typical"),
        limit_w=sheet.maybe("power_limit"),
        latency_s=sheet.maybe("latency"),
    )


def nic(item: str, facts: Iterable[Fact]) -> Nic:
    """The network adapter that the facts describe."""
    sheet = Sheet(facts)
    return Nic(
        id=PartId(item),
        name=sheet.text("name"),
        n_ports=sheet.count("n_ports"),
        port_bytes_per_s=sheet.number("port_bandwidth"),
        power_w=sheet.maybe("power"),
    )


def link(item: str, facts: Iterable[Fact]) -> Link:
    """The cable, optic or bus that the facts describe."""
    sheet = Sheet(facts)
    return Link(
        id=PartId(item),
        name=sheet.text("name"),
        medium=sheet.text("medium"),
        bytes_per_s=sheet.number("bandwidth"),
        measured_bytes_per_s=sheet.maybe("bandwidth_measured"),
        reach_m=sheet.maybe("reach"),
        power_w=sheet.maybe("power"),
    )


def storage(item: str, facts: Iterable[Fact]) -> StorageClass:
    """The storage class that the facts describe."""
    sheet = Sheet(facts)
    return StorageClass(
        id=PartId(item),
        name=sheet.text("name"),
        scope=sheet.text("scope"),
        read_bytes_per_s=sheet.number("read_bandwidth"),
        write_bytes_per_s=sheet.number("write_bandwidth"),
        operations_per_s=sheet.maybe("iops"),
        latency_s=sheet.maybe("latency"),
        usd_per_gb_month=sheet.maybe("price"),
        usable_frac=sheet.maybe("usable"),
    )


def items_of(kinds: Mapping[str, Kind], kind: Kind) -> list[str]:
    """The items of one kind, in table order."""
    return [item for item, found in kinds.items() if found == kind]


def _scale_up(sheet: Sheet) -> ScaleUpLink | None:
    if not sheet.has("scale_up_bandwidth") or not sheet.has("scale_up_domain"):
        return None
    n_domain = sheet.count("scale_up_domain")
    return ScaleUpLink(
        name=sheet.text("scale_up_name"),
        bytes_per_s=sheet.number("scale_up_bandwidth"),
        pair_bytes_per_s=sheet.maybe("scale_up_pair_bandwidth"),
        n_domain=n_domain,
        n_domain_max=sheet.maybe_count("scale_up_domain_max") or n_domain,
    )


def _host_link(sheet: Sheet) -> HostLink | None:
    if not sheet.has("host_link_bandwidth"):
        return None
    return HostLink(
        name=sheet.text("host_link_name"), bytes_per_s=sheet.number("host_link_bandwidth")
    )
